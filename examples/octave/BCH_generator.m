## usage: g = BCH_generator (field, t)
##
## Generator polynomial of the primitive BCH code that corrects T errors: the
## least common multiple of the minimal polynomials of alpha, alpha^2, ..., alpha^(2t).
##
## Conjugate powers have the same minimal polynomial, which is to be a factor
## only once; the common divisors see to that. Coefficients are 0 and 1.

function g = BCH_generator (field, t)
  powers = GF_pow (field, 2, 1:2 * t);
  factors = arrayfun (@(a) GF_minpoly (field, a), powers, "UniformOutput", false);
  g = 1;
  for i = 1:numel (factors)
    g = common_multiple (field, g, factors{i});
  endfor
endfunction

function c = common_multiple (field, a, b)
  divisor = GF_polygcd (field, a, b);
  c = GF_polymul (field, a, GF_polydiv (field, b, divisor));
endfunction

%!test # appendix C of Lin & Costello, which gives generators in octal
%! table = {4, 1, "23"; 4, 2, "721"; 4, 3, "2467"; 5, 1, "45"; 5, 2, "3551";
%!          5, 3, "107657"; 6, 1, "103"; 6, 2, "12471"; 6, 3, "1701317";
%!          6, 4, "166623567"; 7, 1, "211"; 7, 2, "41567"};
%! for row = table'
%!   g = BCH_generator (GF_setup (row{1}), row{2});
%!   assert (dec2base (polyval (g, 2), 8), row{3});
%! endfor
%!test # the powers of alpha that are roots start at alpha^1 and reach alpha^(2t)
%! field = GF_setup (6);
%! g = BCH_generator (field, 3);
%! values = GF_polyeval (field, g, GF_pow (field, 2, 0:6));
%! assert (values(2:7), zeros (1, 6));
%! assert (values(1) != 0);
