## usage: point = ber_point (code, ebn0_db, blocks)
##
## Simulates BLOCKS messages at one signal-to-noise ratio, with and without code.
##
## The result counts, out of `blocks` words, blocks * k message bits and
## blocks * n code bits:
##
##   uncoded_errors  wrong bits of the messages sent without a code
##   channel_errors  wrong bits of the received words, before decoding
##   coded_errors    wrong bits of the messages after decoding
##   block_errors    decoded words that are not the ones sent
##   beyond          received words with more than t wrong bits
##   told            words of which the decoder said that it cannot correct them
##
## The random numbers are those of rand; see bch for repeatable runs.

function point = ber_point (code, ebn0_db, blocks)
  message = random_bits (blocks, code.k);
  point.ebn0_db = ebn0_db;
  point.blocks = blocks;
  uncoded = transmit (message, ebn0_db, 1);
  point.uncoded_errors = nnz (uncoded != message);

  sent = BCH_encode (code, message);
  received = transmit (sent, ebn0_db, code.k / code.n);
  wrong = sum (received != sent, 2);
  point.channel_errors = sum (wrong);

  [decoded, corrections] = decode_rows (code, received);
  point.coded_errors = nnz (decoded(:, 1:code.k) != message);
  point.block_errors = sum (any (decoded != sent, 2));
  point.beyond = sum (wrong > code.t);
  point.told = sum (corrections < 0);
endfunction

function received = transmit (bits, ebn0_db, rate)
  received = bpskdemod (awgn_channel (bpskmod (bits), ebn0_db, rate));
endfunction

function [decoded, corrections] = decode_rows (code, received)
  words = num2cell (received, 2);
  [decoded, corrections] = cellfun (@(word) BCH_decode (code, word), words, ...
                                    "UniformOutput", false);
  decoded = vertcat (decoded{:});
  corrections = vertcat (corrections{:});
endfunction

%!shared code
%! code = BCH_setup (15, 7, 2);
%!test # without noise to speak of, nothing is wrong
%! point = ber_point (code, 40, 5);
%! expected = struct ("ebn0_db", 40, "blocks", 5, "uncoded_errors", 0, "channel_errors", 0, ...
%!                    "coded_errors", 0, "block_errors", 0, "beyond", 0, "told", 0);
%! assert (point, expected);
%!test # a word is wrong exactly when more than t of its bits were
%! rand ("twister", 21);
%! point = ber_point (code, 0, 60);
%! assert (point.block_errors, point.beyond);
%! assert (point.beyond > 5 && point.beyond < 55);
%! assert (point.told > 0 && point.told <= point.beyond);
%! assert (point.channel_errors >= 3 * point.beyond);
%! assert (point.coded_errors <= 7 * point.block_errors);
