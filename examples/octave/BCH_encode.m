## usage: word = BCH_encode (code, message)
##
## Code words of messages, systematically: the message, then the parity bits.
##
## Each row of MESSAGE is one message of k bits, each row of WORD a word of n. Bit
## i of a word is the coefficient of x^(n - i), and the word a multiple of the
## code's generator polynomial.

function word = BCH_encode (code, message)
  if (columns (message) != code.k)
    error ("BCH:size", "BCH_encode: a message has %d bits, not %d", code.k, columns (message));
  endif
  word = [message, mod(message * code.parity, 2)];
endfunction

%!shared code, messages, words
%! code = BCH_setup (15, 7, 2);
%! messages = dec2bin (0:127) - "0";
%! words = BCH_encode (code, messages);
%!assert (words(:, 1:7), messages)
%!test # every word is divided by the generator
%! for i = 1:128
%!   [~, remainder] = GF_polydiv (code.field, words(i, :), code.generator);
%!   assert (remainder, 0);
%! endfor
%!assert (min (sum (words(2:end, :), 2)), 5) # the least distance of this code
%!test # a code word shifted round is a code word
%! assert (sortrows (circshift (words, 1, 2)), sortrows (words));
%!error <a message has 7 bits, not 15> BCH_encode (code, words)
