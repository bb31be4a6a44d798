## usage: code = BCH_setup (n, k, t)
## usage: code = BCH_setup (n, k, t, search)
##
## A binary, primitive, narrow-sense BCH code: words of N = 2^m - 1 bits, K of
## which are the message, with up to T errors corrected.
##
## SEARCH is the function that finds the roots of an error locator: @BCH_chien,
## the default, or @BCH_search, which is simpler and slower. An error
## "BCH:parameters" if there is no such code; n is at most 1023. The result has
##
##   n, k, t    as given
##   field      GF(2^m), see GF_setup
##   generator  the generator polynomial, highest power first
##   parity     k rows of n - k bits: what each message bit adds to the parity
##   search     as given
##
## Lin & Costello, "Error Control Coding", section 6.1.

function code = BCH_setup (n, k, t, search = @BCH_chien)
  code.n = n;
  code.k = k;
  code.t = t;
  code.field = GF_setup (exponent (n, t));
  code.generator = BCH_generator (code.field, t);
  if (numel (code.generator) - 1 != n - k)
    error ("BCH:parameters", ["BCH_setup: the code of %d bits that corrects %d errors " ...
           "has messages of %d bits, not %d"], n, t, n - numel (code.generator) + 1, k);
  endif
  code.parity = parity_matrix (code);
  code.search = search;
endfunction

function m = exponent (n, t)
  m = log2 (n + 1);
  if (m != fix (m))
    error ("BCH:parameters", "BCH_setup: the length must be one less than a power of two");
  elseif (t < 1 || t != fix (t) || 2 * t >= n)
    error ("BCH:parameters", "BCH_setup: cannot correct %g errors in %d bits", t, n);
  endif
endfunction

## Row i is the remainder of x^(n - i) divided by the generator.
function parity = parity_matrix (code)
  rows = arrayfun (@(i) parity_row (code, code.n - i), 1:code.k, "UniformOutput", false);
  parity = vertcat (rows{:});
endfunction

function row = parity_row (code, power)
  [~, remainder] = GF_polydiv (code.field, [1, zeros(1, power)], code.generator);
  row = [zeros(1, code.n - code.k - numel (remainder)), remainder];
endfunction

%!test # dimensions from table 6.1 of Lin & Costello
%! for parameters = {[7 4 1], [15 11 1], [15 7 2], [15 5 3], [31 21 2], [31 16 3], [63 45 3]}
%!   [n, k, t] = num2cell (parameters{1}){:};
%!   code = BCH_setup (n, k, t);
%!   assert (size (code.parity), [k, n - k]);
%!   assert (all (code.parity(:) == 0 | code.parity(:) == 1));
%! endfor
%!test # the last message bit is x^(n-k), whose remainder is the generator's tail
%! code = BCH_setup (31, 21, 2);
%! assert (code.parity(end, :), code.generator(2:end));
%!error <has messages of 7 bits, not 8> BCH_setup (15, 8, 2)
%!error <one less than a power of two> BCH_setup (16, 7, 2)
%!error <cannot correct 0 errors in 15 bits> BCH_setup (15, 15, 0)
%!error <cannot correct 8 errors in 15 bits> BCH_setup (15, 1, 8)
%!error <an integer from 2 to 10> BCH_setup (2047, 2036, 1)
