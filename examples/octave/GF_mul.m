## usage: c = GF_mul (field, a, b)
##
## Product of elements, for each place of A and B.
##
## A and B are rows of the same length, or one of them is a scalar. FIELD is what
## GF_setup makes; its tables need no special case for zero.

function c = GF_mul (field, a, b)
  c = field.exp(field.log(a + 1) + field.log(b + 1) + 1);
endfunction

%!shared field, all
%! field = GF_setup (4);
%! all = 0:15;
%!assert (GF_mul (field, all, 0), zeros (1, 16))
%!assert (GF_mul (field, 0, 0), 0)
%!assert (GF_mul (field, all, 1), all)
%!assert (GF_mul (field, [2 9], [9 9]), [1 13])
%!test # the product of two polynomials, reduced by x^4 + x + 1
%! for a = all
%!   for b = all
%!     c = mod (conv (bitget (a, 4:-1:1), bitget (b, 4:-1:1)), 2);
%!     [~, r] = deconv (c, [1 0 0 1 1]);
%!     assert (GF_mul (field, a, b), polyval (mod (r, 2), 2));
%!   endfor
%! endfor
%!test # multiplication distributes over addition
%! for a = all
%!   for b = all
%!     assert (GF_mul (field, GF_add (all, b), a), ...
%!             GF_add (GF_mul (field, all, a), GF_mul (field, b, a)));
%!   endfor
%! endfor
