## usage: c = GF_add (a, b)
##
## Sum of elements of a field of characteristic two; also their difference.
##
## A and B are of the same size, or one of them is a scalar.

function c = GF_add (a, b)
  c = bitxor (a, b);
endfunction

%!assert (GF_add (5, 3), 6)
%!assert (GF_add ([1 2 3], 3), [2 1 0])
%!assert (GF_add (0:15, 0:15), zeros (1, 16))
