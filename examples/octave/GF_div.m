## usage: c = GF_div (field, a, b)
##
## Quotient a / b, for each place of A and B; an error "GF:zero" where B is zero.

function c = GF_div (field, a, b)
  c = GF_mul (field, a, GF_inv (field, b));
endfunction

%!test
%! field = GF_setup (5);
%! for b = 1:field.n
%!   assert (GF_mul (field, GF_div (field, 0:31, b), b), 0:31);
%! endfor
%!error <zero has no inverse> GF_div (GF_setup (3), 1, 0)
