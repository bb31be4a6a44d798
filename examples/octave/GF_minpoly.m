## usage: p = GF_minpoly (field, a)
##
## Minimal polynomial of the element A over GF(2): the least one, with
## coefficients 0 and 1, that has A as a root.
##
## Its roots are the conjugates a, a^2, a^4, ... (Lin & Costello, section 2.5).

function p = GF_minpoly (field, a)
  p = 1;
  conjugate = a;
  do
    p = GF_polymul (field, p, [1 conjugate]);
    conjugate = GF_mul (field, conjugate, conjugate);
  until (conjugate == a)
endfunction

%!test # table 2.9 of Lin & Costello: the minimal polynomials of GF(2^4)
%! field = GF_setup (4);
%! minimal = @(i) GF_minpoly (field, GF_pow (field, 2, i));
%! assert (minimal (0), [1 1]);
%! assert (minimal (1), [1 0 0 1 1]);
%! assert (minimal (3), [1 1 1 1 1]);
%! assert (minimal (5), [1 1 1]);
%! assert (minimal (7), [1 1 0 0 1]);
%! assert (minimal (14), minimal (7));
%! assert (GF_minpoly (field, 0), [1 0]);
%!test # binary, irreducible by its roots, of a degree that divides m
%! field = GF_setup (6);
%! for a = 1:field.n
%!   p = GF_minpoly (field, a);
%!   assert (all (p == 0 | p == 1));
%!   assert (GF_polyeval (field, p, a), 0);
%!   assert (mod (6, numel (p) - 1), 0);
%!   assert (numel (GF_roots (field, p)), numel (p) - 1);
%! endfor
