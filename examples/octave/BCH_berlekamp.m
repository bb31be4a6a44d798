## usage: locator = BCH_berlekamp (field, syndrome)
##
## Error locator polynomial of a row of 2t syndromes, highest power first.
##
## The locator has constant term 1 and the inverse of alpha^j as a root for each
## error at x^j. It is the shortest linear recurrence that makes the syndromes:
## Berlekamp's algorithm ("Algebraic Coding Theory", 1968, chapter 7) as Massey
## put it ("Shift-register synthesis and BCH decoding", 1969). If it is longer
## than t, there are more than t errors: an error "BCH:uncorrectable".

function locator = BCH_berlekamp (field, syndrome)
  locator = 1;
  before = 1;        # the locator before its length last changed,
  divisor = 1;       # the discrepancy at that time,
  shift = 1;         # and the number of syndromes since
  errors = 0;
  for r = 1:numel (syndrome)
    d = discrepancy (field, locator, syndrome, r, errors);
    if (d == 0)
      shift += 1;
      continue;
    endif
    correction = GF_mul (field, before, GF_div (field, d, divisor));
    corrected = GF_polyadd (locator, [correction, zeros(1, shift)]);
    if (2 * errors < r)
      errors = r - errors;
      before = locator;
      divisor = d;
      shift = 1;
    else
      shift += 1;
    endif
    locator = corrected;
  endfor
  if (numel (locator) - 1 != errors || 2 * errors > numel (syndrome))
    error ("BCH:uncorrectable", "BCH_berlekamp: more errors than the code corrects");
  endif
endfunction

## By how much syndrome r is not what the recurrence says of it.
function d = discrepancy (field, locator, syndrome, r, errors)
  d = syndrome(r);
  for i = 1:min (errors, numel (locator) - 1)
    d = GF_add (d, GF_mul (field, locator(end - i), syndrome(r - i)));
  endfor
endfunction

%!shared field
%! field = GF_setup (4);
%!assert (BCH_berlekamp (field, zeros (1, 4)), 1)
%!test # example 6.5 of Lin & Costello: errors at x^3, x^5 and x^12, t = 3
%! syndrome = [1 1 GF_pow(field, 2, 10) 1 GF_pow(field, 2, [10 5])];
%! assert (BCH_berlekamp (field, syndrome), [GF_pow(field, 2, 5) 0 1 1]);
%!test # the product of 1 + alpha^j x over the errors
%! for a = 0:13
%!   for b = a + 1:14
%!     located = GF_pow (field, 2, [a b]);
%!     powers = GF_pow (field, 2, (1:4)' .* [a b]);
%!     syndrome = GF_add (powers(:, 1), powers(:, 2))';
%!     product = GF_polymul (field, [located(1) 1], [located(2) 1]);
%!     assert (BCH_berlekamp (field, syndrome), product);
%!   endfor
%! endfor
%!error <more errors than the code corrects> BCH_berlekamp (field, [0 0 1 0])
