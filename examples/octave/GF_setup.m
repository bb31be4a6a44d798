## usage: field = GF_setup (m)
##
## Tables of the Galois field GF(2^m), 2 <= m <= 10.
##
## An element is written as an integer from 0 to 2^m - 1 whose bits are the
## coefficients of a polynomial in alpha, the root of a primitive polynomial.
## The result is a structure with
##
##   m          the exponent
##   n          2^m - 1, the number of elements other than zero
##   primitive  the primitive polynomial, as an integer
##   exp        exp(i + 1) is alpha^i for 0 <= i <= 2n - 2, and 0 above that
##   log        log(a + 1) is the i from 0 to n - 1 with alpha^i = a; 2n for a = 0
##
## As the logarithm of zero is so large that any sum with it falls in the part of
## exp that is zero, a product is two table look-ups and no case distinction.
## The polynomials are those of Lin & Costello, "Error Control Coding", table 2.7.

function field = GF_setup (m)
  if (! (isscalar (m) && any (m == 2:10)))
    error ("GF:exponent", "GF_setup: the exponent must be an integer from 2 to 10");
  endif
  field.m = m;
  field.n = 2^m - 1;
  field.primitive = primitive_polynomial (m);
  powers = powers_of_alpha (field);
  field.exp = [powers, powers(1:end-1), zeros(1, 2 * field.n + 2)];
  field.log = zeros (1, field.n + 1);
  field.log(powers + 1) = 0:field.n - 1;
  field.log(1) = 2 * field.n;
endfunction

function primitive = primitive_polynomial (m)
  exponents = {[], [2 1 0], [3 1 0], [4 1 0], [5 2 0], [6 1 0], [7 3 0], ...
               [8 4 3 2 0], [9 4 0], [10 3 0]};
  primitive = sum (2 .^ exponents{m});
endfunction

## The n powers of alpha from alpha^0 on; they are all different, or the
## polynomial was not primitive.
function powers = powers_of_alpha (field)
  powers = zeros (1, field.n);
  element = 1;
  for i = 1:field.n
    powers(i) = element;
    element = times_alpha (field, element);
  endfor
  if (numel (unique (powers)) != field.n)
    error ("GF:primitive", "GF_setup: the polynomial %d is not primitive", field.primitive);
  endif
endfunction

function element = times_alpha (field, element)
  element *= 2;
  if (element > field.n)
    element = bitxor (element, field.primitive);
  endif
endfunction

%!test
%! field = GF_setup (4);
%! assert (field.exp(1:15), [1 2 4 8 3 6 12 11 5 10 7 14 15 13 9]);
%!test
%! for m = 2:10
%!   field = GF_setup (m);
%!   assert (field.exp(field.log(2:end) + 1), 1:field.n);
%!   assert (field.exp(1:field.n - 1), field.exp(field.n + (1:field.n - 1)));
%!   assert (field.exp(2 * field.n:end), zeros (1, 2 * field.n + 2));
%!   assert (numel (field.exp), 2 * field.log(1) + 1);
%! endfor
%!error <an integer from 2 to 10> GF_setup (1)
%!error <an integer from 2 to 10> GF_setup (2.5)
%!error <an integer from 2 to 10> GF_setup (11)
