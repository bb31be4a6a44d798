## usage: b = GF_inv (field, a)
##
## The element with a b = 1, for each place of A.
##
## Zero has none: an error "GF:zero".

function b = GF_inv (field, a)
  if (any (a == 0))
    error ("GF:zero", "GF_inv: zero has no inverse");
  endif
  b = field.exp(field.n - field.log(a + 1) + 1);
endfunction

%!test
%! for m = 2:10
%!   field = GF_setup (m);
%!   assert (GF_mul (field, GF_inv (field, 1:field.n), 1:field.n), ones (1, field.n));
%! endfor
%!error <zero has no inverse> GF_inv (GF_setup (3), 0)
%!error <zero has no inverse> GF_inv (GF_setup (3), [1 0])
