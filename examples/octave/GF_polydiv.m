## usage: [quotient, remainder] = GF_polydiv (field, a, b)
##
## Division of polynomials: a = quotient b + remainder, deg remainder < deg b.
##
## A polynomial is a row of coefficients, highest power first. Division by the
## zero polynomial is an error "GF:zero".

function [quotient, remainder] = GF_polydiv (field, a, b)
  b = polytrim (b);
  if (isequal (b, 0))
    error ("GF:zero", "GF_polydiv: the divisor is zero");
  endif
  steps = max (numel (a) - numel (b) + 1, 0);
  quotient = zeros (1, steps);
  for i = 1:steps
    if (a(i) != 0)
      quotient(i) = GF_div (field, a(i), b(1));
      places = i:i + numel (b) - 1;
      a(places) = GF_add (a(places), GF_mul (field, b, quotient(i)));
    endif
  endfor
  quotient = polytrim (quotient);
  remainder = polytrim (a);
endfunction

%!shared field
%! field = GF_setup (4);
%!test
%! [q, r] = GF_polydiv (field, [1 0 0 0 1], [1 1]);
%! assert ({q, r}, {[1 1 1 1], 0});
%!test # a shorter dividend is its own remainder
%! [q, r] = GF_polydiv (field, [3 4], [1 0 0]);
%! assert ({q, r}, {0, [3 4]});
%!test # quotient and remainder make the dividend again
%! a = [7 0 3 12 15 1 0 9];
%! for b = {[5 1 2], 6, [0 0 11 3], [1 0 0 0 2]}
%!   [q, r] = GF_polydiv (field, a, b{1});
%!   assert (GF_polyadd (GF_polymul (field, q, b{1}), r), a);
%!   assert (isequal (r, 0) || numel (r) < numel (b{1}));
%! endfor
%!error <the divisor is zero> GF_polydiv (field, [1 2 3], [0 0])
