## usage: c = GF_polyadd (a, b)
##
## Sum of two polynomials, without leading zeros.
##
## A polynomial is a row of coefficients, highest power first, as for polyval.
## The zero polynomial is the scalar 0.

function c = GF_polyadd (a, b)
  length = max (numel (a), numel (b));
  c = polytrim (GF_add (left_padded (a, length), left_padded (b, length)));
endfunction

function p = left_padded (p, length)
  p = [zeros(1, length - numel (p)), p];
endfunction

%!assert (GF_polyadd ([1 2 3], [4 5]), [1 6 6])
%!assert (GF_polyadd ([4 5], [1 2 3]), [1 6 6])
%!assert (GF_polyadd ([7 7 1], [7 7 3]), 2)
%!assert (GF_polyadd ([7 7 1], [7 7 1]), 0)
%!assert (GF_polyadd (0, [3 0]), [3 0])
