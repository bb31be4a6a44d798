## usage: received = awgn_channel (symbols, ebn0_db, rate)
##
## Adds white Gaussian noise to symbols of energy 1.
##
## EBN0_DB is the energy of a message bit over the noise's spectral density, in
## decibels; RATE is message bits per symbol: with a code less than 1, so that a
## symbol has only that part of the energy of a message bit.

function received = awgn_channel (symbols, ebn0_db, rate)
  deviation = sqrt (1 / (2 * rate * 10 ^ (ebn0_db / 10)));
  received = symbols + deviation * boxmuller (rows (symbols), columns (symbols));
endfunction

%!test # the noise's power is 1/2 at 0 dB and rate 1, and inverse to both
%! rand ("twister", 3);
%! N = 100000;
%! power = @(ebn0_db, rate) mean (awgn_channel (zeros (10, N / 10), ebn0_db, rate)(:) .^ 2);
%! margin = 4 * sqrt (2 / N);
%! assert (power (0, 1), 1/2, -margin);
%! assert (power (10, 1), 1/20, -margin);
%! assert (power (0, 1/4), 2, -margin);
%!test
%! rand ("twister", 3);
%! assert (mean (awgn_channel (ones (1, 1e5), 10, 1)), 1, 4 * sqrt (1/20/1e5));
