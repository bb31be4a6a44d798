## usage: c = GF_polygcd (field, a, b)
##
## Greatest common divisor of two polynomials, with leading coefficient 1.
##
## Euclid's algorithm, by recursion as deep as there are steps. If both are zero,
## so is the result. A polynomial is a row of coefficients, highest power first.

function c = GF_polygcd (field, a, b)
  if (any (b))
    [~, remainder] = GF_polydiv (field, a, b);
    c = GF_polygcd (field, b, remainder);
  else
    c = monic (field, polytrim (a));
  endif
endfunction

function p = monic (field, p)
  if (any (p))
    p = GF_div (field, p, p(1));
  endif
endfunction

%!shared field
%! field = GF_setup (4);
%!assert (GF_polygcd (field, [1 0 1], [1 1]), [1 1])
%!assert (GF_polygcd (field, 0, [3 0]), [1 0])
%!assert (GF_polygcd (field, [3 0], 0), [1 0])
%!assert (GF_polygcd (field, 0, 0), 0)
%!assert (GF_polygcd (field, [1 0 0 1 1], [1 1 1 1 1]), 1)
%!test # (x + 1)(x + 2) and (x + 2)(x + 3), each times a constant
%! a = GF_polymul (field, GF_polymul (field, [1 1], [1 2]), 7);
%! b = GF_polymul (field, GF_polymul (field, [1 2], [1 3]), 9);
%! assert (GF_polygcd (field, a, b), [1 2]);
