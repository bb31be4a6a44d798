## usage: places = BCH_search (code, locator)
##
## Where a word of the code has its errors, as indexes into the word in falling
## order: as BCH_chien, but by trying each element of the field.
##
## Simpler and slower; kept to compare, by results and by profiles.

function places = BCH_search (code, locator)
  roots = GF_roots (code.field, locator);
  if (numel (roots) != numel (locator) - 1)
    error ("BCH:uncorrectable", "BCH_search: fewer roots than the degree of the locator");
  endif
  powers = code.field.log(GF_inv (code.field, roots) + 1);
  places = sort (code.n - powers, "descend");
endfunction

%!shared code
%! code = BCH_setup (31, 16, 3);
%!test # the same as by Chien's search, for locators of three errors
%! for a = 0:9:27
%!   for b = a + (1:2)
%!     locator = 1;
%!     for j = [a b 30]
%!       locator = GF_polymul (code.field, locator, [GF_pow(code.field, 2, j) 1]);
%!     endfor
%!     assert (BCH_search (code, locator), BCH_chien (code, locator));
%!     assert (BCH_search (code, locator), 31 - [a b 30]);
%!   endfor
%! endfor
%!assert (BCH_search (code, 1), [])
%!error <fewer roots than the degree> BCH_search (code, [1 0 1])
