## Copyright (C) 2026 The Treering developers
##
## Licensed under the MIT licence; see the file COPYING.

## -*- texinfo -*-
## @deftypefn  {} {} profile on
## @deftypefnx {} {} profile on @var{kind} @var{option} @dots{}
## @deftypefnx {} {} profile off
## @deftypefnx {} {} profile resume
## @deftypefnx {} {} profile clear
## @deftypefnx {} {} profile info @var{kind} @var{option} @dots{}
## @deftypefnx {} {} profile view
## @deftypefnx {} {@var{S} =} profile ("status")
## @deftypefnx {} {@var{S} =} profile ("info")
## Profile the code that runs from now on, with Treering.
##
## This command takes the place of Octave's own while the package treering is
## loaded; @code{treering_native_profile} gives that back.  What it returns
## has the same form, so @code{profshow}, @code{profexplore} and
## @code{profexport} work as before: @var{S}.@code{FunctionTable} has the
## fields @code{FunctionName}, @code{TotalTime} (in the function itself, as in
## Octave), @code{NumCalls}, @code{IsRecursive}, @code{Parents} and
## @code{Children}; @var{S}.@code{Hierarchical} the fields @code{Index},
## @code{SelfTime}, @code{TotalTime} (with all that was called),
## @code{NumCalls} and @code{Children}.
##
## @code{profile view} stops and shows the profile as a page in the browser.
##
## Commands and options are those of @code{treering}, whose result has more
## fields: statistics, arcs, and what the top level took.
## @seealso{treering, treering_native_profile, profshow, profexplore, profexport}
## @end deftypefn

function retval = profile (command, varargin)

  if (nargin < 1)
    print_usage ();
  endif

  switch (command)
    case "status"
      status = __treering__ ("status", varargin{:});
      retval = struct ("ProfilerStatus", status.ProfilerStatus);
    case "info"
      if (nargout > 0)
        retval = __treering__ ("info", varargin{:});
      else
        treering ("info", varargin{:});
      endif
    otherwise
      treering (command, varargin{:});
  endswitch

endfunction


%!test
%! on_struct.ProfilerStatus = "on";
%! off_struct.ProfilerStatus = "off";
%! profile ("on");
%! result = logm (rand (50) + 10 * eye (50));
%! assert (profile ("status"), on_struct);
%! profile ("off");
%! assert (profile ("status"), off_struct);
%! profile ("resume");
%! result = logm (rand (50) + 10 * eye (50));
%! profile ("off");
%! info = profile ("info");
%! assert (size (info), [1, 1]);
%! assert (fieldnames (info), {"FunctionTable"; "Hierarchical"});
%! assert (fieldnames (info.FunctionTable), {"FunctionName"; "TotalTime"; "NumCalls"; "IsRecursive"; "Parents"; "Children"});
%! assert (fieldnames (info.Hierarchical), {"Index"; "SelfTime"; "TotalTime"; "NumCalls"; "Children"});
%! at = find (strcmp ({info.FunctionTable.FunctionName}, "logm"));
%! assert (info.FunctionTable(at).NumCalls, 2);
%! profile ("clear");
%! info = profile ("info");
%! assert (size (info.FunctionTable), [0, 1]);
%! assert (size (info.Hierarchical), [0, 1]);

%!error <Invalid call> profile ()
%!error profile ("on", 2)
%!error profile ("INVALID_OPTION")
