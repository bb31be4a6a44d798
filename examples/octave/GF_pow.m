## usage: b = GF_pow (field, a, e)
##
## The power a^e, for each place of A and E; the exponents are integers.
##
## 0^0 is 1. A negative power of zero is an error "GF:zero".

function b = GF_pow (field, a, e)
  if (any (a == 0 & e < 0))
    error ("GF:zero", "GF_pow: zero has no negative power");
  endif
  logarithm = mod (field.log(a + 1) .* e, field.n);
  b = field.exp(logarithm + 1) .* (a != 0 | e == 0);
endfunction

%!shared field
%! field = GF_setup (4);
%!assert (GF_pow (field, 2, 0:14), field.exp(1:15))
%!assert (GF_pow (field, 0:15, 0), ones (1, 16))
%!assert (GF_pow (field, 0, [0 1 5]), [1 0 0])
%!assert (GF_pow (field, 1:15, -1), GF_inv (field, 1:15))
%!assert (GF_pow (field, 0:15, 16), 0:15)
%!test
%! power = ones (1, 16);
%! for e = 0:40
%!   assert (GF_pow (field, 0:15, e), power);
%!   power = GF_mul (field, power, 0:15);
%! endfor
%!error <no negative power> GF_pow (field, 0, -1)
