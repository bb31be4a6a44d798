## Copyright (C) 2026 The Treering developers
##
## Licensed under the MIT licence; see the file COPYING.

## -*- texinfo -*-
## @deftypefn  {} {} treering_native_profile
## @deftypefnx {} {} treering_native_profile off
## Make @code{profile} Octave's own command again.
##
## With @code{off} it becomes that of the package treering once more.  The
## command @code{treering} is there in any case.
## @seealso{treering, profile}
## @end deftypefn

function treering_native_profile (word = "on")

  folder = fullfile (fileparts (mfilename ("fullpath")), "takeover");
  is_taken = any (strcmp (folder, strsplit (path (), pathsep ())));
  warning ("off", "Octave:shadowed-function", "local");
  if (strcmp (word, "on") && is_taken)
    __treering__ ("off");
    rmpath (folder);
  elseif (strcmp (word, "off") && ! is_taken)
    addpath (folder);
  elseif (! any (strcmp (word, {"on", "off"})))
    print_usage ();
  endif

endfunction


%!test
%! ours = which ("profile");
%! treering_native_profile
%! assert (! strcmp (which ("profile"), ours));
%! treering_native_profile off
%! assert (which ("profile"), ours);
