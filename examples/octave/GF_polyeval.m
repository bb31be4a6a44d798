## usage: y = GF_polyeval (field, p, x)
##
## Values of the polynomial P in the elements X, by Horner's rule.
##
## P is a row of coefficients, highest power first; X is a scalar or a row.
## One multiplication and one addition for each coefficient, however many X.

function y = GF_polyeval (field, p, x)
  y = zeros (size (x));
  for coefficient = p
    y = GF_add (GF_mul (field, y, x), coefficient);
  endfor
endfunction

%!shared field
%! field = GF_setup (4);
%!assert (GF_polyeval (field, [1 0 0 1 1], field.exp([2 3 5 9])), zeros (1, 4))
%!assert (GF_polyeval (field, 7, 0:3), [7 7 7 7])
%!assert (GF_polyeval (field, [3 5 9], 0), 9)
%!test # the sum of the terms
%! p = [11 0 3 7];
%! x = 0:15;
%! y = zeros (1, 16);
%! for i = 1:4
%!   y = GF_add (y, GF_mul (field, GF_pow (field, x, 4 - i), p(i)));
%! endfor
%! assert (GF_polyeval (field, p, x), y);
