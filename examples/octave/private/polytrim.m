## usage: p = polytrim (p)
##
## The polynomial P without leading zeros; the zero polynomial is the scalar 0.

function p = polytrim (p)
  first = find (p, 1);
  if (isempty (first))
    p = 0;
  else
    p = p(first:end);
  endif
endfunction

%!assert (polytrim ([0 0 3 0]), [3 0])
%!assert (polytrim ([1 2]), [1 2])
%!assert (polytrim ([0 0]), 0)
%!assert (polytrim (zeros (1, 0)), 0)
