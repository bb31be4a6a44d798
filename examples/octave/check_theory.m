## usage: check_theory ()
## usage: check_theory (blocks)
##
## Holds the simulation against theory and fails with an error where it is off.
##
## Asserted are, for (15,7), (31,21) and (63,45):
##
##   - every word encoded is a multiple of the generator and has the message first;
##   - without a code, wrong bits are as frequent as Q(sqrt(2 Eb/N0)); with one,
##     wrong bits before decoding and wrong words after it are as frequent as they
##     should be, each within sampling error (four standard deviations, see
##     agrees) at every signal-to-noise ratio, and all ratios taken together;
##   - words are wrong after decoding just as often as there were more than t errors;
##
## and for (15,7) that every pattern of up to 2 errors is corrected, and no other.
## BLOCKS, 300 by default, is the number of words at each ratio.

function check_theory (blocks = 300)
  codes = {[15 7 2], [31 21 2], [63 45 3]};
  for i = 1:numel (codes)
    [curve, code] = bch (blocks, codes{i}, 0:6, 100 + i);
    printf ("(%d,%d): ", code.n, code.k);
    check_multiples (code);
    check_rates (code, curve);
    printf ("words are multiples of the generator, %d rates agree with theory\n", ...
            3 * numel (curve) + 3);
  endfor
  check_patterns (BCH_setup (15, 7, 2));
endfunction

## All messages if there are few, else those of one bit, of which all are sums.
function check_multiples (code)
  if (code.k <= 8)
    messages = dec2bin (0:2^code.k - 1) - "0";
  else
    messages = eye (code.k);
  endif
  words = BCH_encode (code, messages);
  assert (words(:, 1:code.k), messages);
  for word = words'
    [~, remainder] = GF_polydiv (code.field, word', code.generator);
    assert (remainder, 0);
  endfor
endfunction

function check_rates (code, curve)
  theory = ber_theory (code, [curve.ebn0_db]);
  words = [curve.blocks];
  check_rate (code, "uncoded", [curve.uncoded_errors], words * code.k, theory.uncoded);
  check_rate (code, "channel", [curve.channel_errors], words * code.n, theory.channel);
  check_rate (code, "block", [curve.block_errors], words, theory.block);
  assert ([curve.block_errors], [curve.beyond]);
  assert ([curve.told] <= [curve.beyond]);
endfunction

## Each ratio by itself, then the sum, whose deviation is that of a sum of binomials.
function check_rate (code, name, counts, trials, chances)
  off = find (! agrees (counts, trials, chances), 1);
  if (! isempty (off))
    error ("check_theory: (%d,%d): %s rate %g, which should be %g", code.n, code.k, ...
           name, counts(off) / trials(off), chances(off));
  endif
  deviation = sqrt (sum (trials .* chances .* (1 - chances)));
  off_by = (sum (counts) - sum (trials .* chances)) / deviation;
  if (abs (off_by) > 4)
    error ("check_theory: (%d,%d): %s errors are off by %.1f standard deviations", ...
           code.n, code.k, name, off_by);
  endif
endfunction

## Each pattern on another code word, so that all of them are used.
function check_patterns (code)
  words = BCH_encode (code, dec2bin (0:127) - "0");
  patterns = [{[]}; num2cell(nchoosek (1:15, 1), 2); ...
              num2cell(nchoosek (1:15, 2), 2); num2cell(nchoosek (1:15, 3), 2)];
  corrected = 0;
  for i = 1:numel (patterns)
    correctable = numel (patterns{i}) <= code.t;
    check_pattern (code, words(mod (i, 128) + 1, :), patterns{i}, correctable);
    corrected += correctable;
  endfor
  assert ([corrected, numel(patterns)], [121, 576]);
  printf ("(%d,%d): 121 patterns of up to 2 errors corrected, 455 of 3 not\n", code.n, code.k);
endfunction

## Decodes SENT with errors at PLACES, which is to give SENT again or not.
function check_pattern (code, sent, places, correctable)
  received = sent;
  received(places) = 1 - received(places);
  [decoded, errors] = BCH_decode (code, received);
  assert (isequal (decoded, sent), correctable);
  if (correctable)
    assert (errors, numel (places));
  else
    assert (errors == -1 || (errors <= code.t && ! any (BCH_syndrome (code, decoded))));
  endif
endfunction

%!test
%! text = evalc ("check_theory (40)");
%! assert (numel (strfind (text, "24 rates agree with theory")), 3);
%! assert (! isempty (strfind (text, "121 patterns of up to 2 errors corrected")));
