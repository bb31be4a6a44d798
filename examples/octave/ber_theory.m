## usage: theory = ber_theory (code, ebn0_db)
##
## What error rates should be, for a row of signal-to-noise ratios in decibels.
##
## The result has a row for each of
##
##   uncoded  bit errors without a code: Q(sqrt(2 Eb/N0))
##   channel  bit errors before decoding, where a symbol has k/n of the energy
##   block    words not decoded to what was sent: those with more than t errors,
##            the sum over i > t of C(n, i) p^i (1 - p)^(n - i)
##
## where Q(x) is the chance that a standard normal number is above x, and p the
## channel's rate. The last is exact for a bounded-distance decoder and hard
## decisions (Lin & Costello, sections 1.5 and 10.2).

function theory = ber_theory (code, ebn0_db)
  ebn0 = 10 .^ (ebn0_db / 10);
  theory.uncoded = normal_tail (sqrt (2 * ebn0));
  theory.channel = normal_tail (sqrt (2 * ebn0 * code.k / code.n));
  theory.block = binomial_above (code.t, code.n, theory.channel);
endfunction

function q = normal_tail (x)
  q = erfc (x / sqrt (2)) / 2;
endfunction

%!shared code
%! code = struct ("n", 15, "k", 7, "t", 2);
%!test # known points of the curve of BPSK
%! theory = ber_theory (code, [0 5 9.5879]);
%! assert (theory.uncoded, [0.0786496 0.00595387 1e-5], -1e-4);
%!test # 10 log10 (15/7) dB more is what the code's rate costs
%! loss = 10 * log10 (15 / 7);
%! assert (ber_theory (code, 3 + loss).channel, ber_theory (code, 3).uncoded, -1e-12);
%!test # the sum as it is written
%! theory = ber_theory (code, 0:4);
%! p = theory.channel;
%! expected = zeros (1, 5);
%! for i = 3:15
%!   expected += nchoosek (15, i) * p .^ i .* (1 - p) .^ (15 - i);
%! endfor
%! assert (theory.block, expected, -1e-10);
