## Copyright (C) 2026 The Treering developers
##
## Licensed under the MIT licence; see the file COPYING.

## -*- texinfo -*-
## @deftypefn  {} {} treering on
## @deftypefnx {} {} treering on @var{kind} @var{option} @dots{}
## @deftypefnx {} {} treering off
## @deftypefnx {} {} treering resume
## @deftypefnx {} {} treering clear
## @deftypefnx {} {} treering info
## @deftypefnx {} {@var{S} =} treering ("info")
## @deftypefnx {} {@var{S} =} treering ("status")
## @deftypefnx {} {} treering save @var{file}
## Profile the code that runs from now on.
##
## @code{on} starts a new profile; what was recorded before is forgotten.
## @var{kind} is @code{graph}, the default, for a profile with callers and
## callees, or @code{flat} for one record of each function.  Options:
##
## @table @code
## @item -lines
## Record hits and time of each line.
## @item -args
## Record costs by the size of the largest argument.
## @item -operators
## Record operators as well; this costs more, for Octave builds a text for
## each call of any function.
## @item -memory
## Record what each function allocates itself: how many blocks and bytes, how
## many bytes of these are not freed yet, and the most at any time.
## @item -only @var{pattern}
## Record functions only whose name fits, with @code{*} and @code{?}; may be
## given several times.  The time of others is their callers'.
## @item -ignore @var{pattern}
## Leave functions out.
## @item -output @var{file}
## Write the profile to a file when Octave ends.  It can be read while it
## grows, and after a crash, with @code{treering report @var{file}}.
## @end table
##
## @code{off} stops, @code{resume} goes on with the same profile and
## @code{clear} forgets it.  @code{info} stops and prints two tables: the
## functions, and the call graph.  With an output argument it returns a
## structure with the fields of @code{profile ("info")} and more:
## @code{SelfTime}, @code{CumulativeTime} (with all that was called),
## @code{Kind}, @code{FileName} and @code{Line} of each function, with
## @code{-memory} @code{Allocations}, @code{AllocatedBytes}, @code{LiveBytes}
## and @code{PeakBytes}, and @code{Arcs} from callers to callees.  Times are in seconds, without the
## cost of measuring.  @code{save} writes the profile to a file that
## the program @code{treering} reads.
##
## While these commands run nothing is recorded.
## @seealso{profile, treering_native_profile, profshow, profexplore, profexport}
## @end deftypefn

function retval = treering (command, varargin)

  if (nargin < 1 || ! ischar (command) || ! iscellstr (varargin))
    print_usage ();
  endif

  switch (command)
    case "on"
      __treering__ ("on", varargin{:}, "-home", fileparts (mfilename ("fullpath")));
    case {"off", "resume", "clear", "save"}
      __treering__ (command, varargin{:});
    case "status"
      retval = __treering__ ("status", varargin{:});
    case "info"
      if (nargout > 0)
        retval = __treering__ ("details", varargin{:});
      else
        __treering__ ("off");
        puts (__treering__ ("print", varargin{:}));
      endif
    otherwise
      error ("Octave:undefined-function", "treering: unknown command '%s'", command);
  endswitch

endfunction


%!function r = __treering_test_inner__ (n)
%!  r = sum (1:n);
%!endfunction

%!test <*1>
%! treering on
%! for i = 1:7
%!   __treering_test_inner__ (i);
%! endfor
%! treering off
%! S = treering ("info");
%! names = {S.FunctionTable.FunctionName};
%! at = find (strcmp (names, "__treering_test_inner__"));
%! below = find (strcmp (names, "sum"));
%! assert (S.FunctionTable(at).NumCalls, 7);
%! assert (S.FunctionTable(at).CumulativeTime >= S.FunctionTable(at).SelfTime);
%! arc = S.Arcs([S.Arcs.Caller] == at & [S.Arcs.Callee] == below);
%! assert (arc.NumCalls, 7);

%!test
%! ## Nothing of what was before is left, and resuming adds.
%! treering on
%! sin (1);
%! treering off
%! treering on
%! cos (1);
%! treering off
%! treering resume
%! cos (1);
%! treering off
%! S = treering ("info");
%! names = {S.FunctionTable.FunctionName};
%! assert (! any (strcmp (names, "sin")));
%! assert (S.FunctionTable(strcmp (names, "cos")).NumCalls, 2);

%!test
%! treering on -only co*
%! sin (1); cos (1);
%! treering off
%! S = treering ("info");
%! assert ({S.FunctionTable.FunctionName}, {"cos"});

%!test
%! treering clear
%! S = treering ("info");
%! assert (size (S.FunctionTable), [0, 1]);

%!test
%! ## Errors leave a balanced profile.
%! treering on
%! try
%!   cellfun (@(x) error ("caught"), {1, 2});
%! catch
%! end_try_catch
%! sin (1);
%! treering off
%! S = treering ("info");
%! names = {S.FunctionTable.FunctionName};
%! at = find (strcmp (names, "sin"));
%! assert (! any ([S.Arcs.Callee] == at & [S.Arcs.Caller] == find (strcmp (names, "cellfun"))));

%!test
%! ## Memory belongs to the function that took it until it is freed, by whomever.
%! treering on -memory
%! kept = ones (1, 1e5);
%! dropped = zeros (1, 2e5) + 1;
%! dropped = [];
%! treering off
%! S = treering ("info");
%! row = @(name) S.FunctionTable(strcmp ({S.FunctionTable.FunctionName}, name));
%! assert (row ("ones").LiveBytes >= 8e5 && row ("ones").LiveBytes < 8.1e5);
%! assert (row ("zeros").LiveBytes < 1e5);
%! assert (row ("zeros").PeakBytes >= 1.6e6);
%! assert (row ("zeros").AllocatedBytes >= 1.6e6);

%!error <Invalid call> treering ()
%!error <unknown option> treering ("on", "-surprise")
%!error <unknown command> treering ("surprise")
