## usage: x = GF_roots (field, p)
##
## The different roots of the polynomial P in the field, in rising order.
##
## All elements are tried one after the other, until as many roots are found as
## the degree allows. The zero polynomial is an error "GF:zero": all are roots.

function x = GF_roots (field, p)
  p = polytrim (p);
  if (isequal (p, 0))
    error ("GF:zero", "GF_roots: every element is a root of zero");
  endif
  x = [];
  for candidate = 0:field.n
    if (numel (x) == numel (p) - 1)
      break;
    elseif (GF_polyeval (field, p, candidate) == 0)
      x(end+1) = candidate;
    endif
  endfor
endfunction

%!shared field
%! field = GF_setup (4);
%!assert (GF_roots (field, [1 0 0 1 1]), sort (field.exp([2 3 5 9])))
%!assert (GF_roots (field, 5), [])
%!assert (GF_roots (field, [3 0]), 0)
%!assert (GF_roots (field, [1 0 1]), 1)
%!assert (GF_roots (field, [1, zeros(1, 14), 1, 0]), 0:15)
%!test # a polynomial made of its roots
%! p = 9;
%! for root = [3 7 12 15]
%!   p = GF_polymul (field, p, [1 root]);
%! endfor
%! assert (GF_roots (field, p), [3 7 12 15]);
%!error <every element is a root> GF_roots (field, [0 0])
