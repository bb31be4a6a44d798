## usage: c = GF_polymul (field, a, b)
##
## Product of two polynomials, without leading zeros.
##
## A polynomial is a row of coefficients, highest power first.

function c = GF_polymul (field, a, b)
  c = zeros (1, numel (a) + numel (b) - 1);
  for i = 1:numel (a)
    places = i:i + numel (b) - 1;
    c(places) = GF_add (c(places), GF_mul (field, b, a(i)));
  endfor
  c = polytrim (c);
endfunction

%!shared field
%! field = GF_setup (4);
%!assert (GF_polymul (field, [1 1], [1 1]), [1 0 1])
%!assert (GF_polymul (field, [1 2], [1 9]), [1 11 1])
%!assert (GF_polymul (field, [3 5 7], 0), 0)
%!assert (GF_polymul (field, [0 0 1], [0 6]), 6)
%!test # over GF(2) it is convolution modulo two
%! a = [1 0 1 1 0 1];
%! b = [1 1 1 0 1];
%! assert (GF_polymul (field, a, b), mod (conv (a, b), 2));
