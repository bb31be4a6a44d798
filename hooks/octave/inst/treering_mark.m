## Copyright (C) 2026 The Treering developers
##
## Licensed under the MIT licence; see the file COPYING.

## -*- texinfo -*-
## @deftypefn {} {} treering_mark (@var{name})
## Mark this moment with a name, in the profile of @code{treering octave} or
## @code{treering record}.
##
## What happens from here up to the next mark is a phase of that name, which
## @code{treering report --phase @var{name}} shows alone.  The first 104 bytes
## of a name are kept, and 16,384 marks of a recording.  Where nothing records
## this does nothing.
## @seealso{treering}
## @end deftypefn

function treering_mark (name)

  if (nargin != 1 || ! (ischar (name) && (isrow (name) || isempty (name))))
    print_usage ();
  endif
  __treering__ ("mark", [name, ""]);

endfunction


%!test
%! treering_mark ("load");
%! treering_mark ("");
%!error <Invalid call> treering_mark ()
%!error <Invalid call> treering_mark (1)
