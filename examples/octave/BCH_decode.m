## usage: [corrected, errors] = BCH_decode (code, word)
##
## Corrects up to t errors in a received word of n bits.
##
## ERRORS is how many bits were corrected, or -1 if it was found that more than
## t are wrong; then the word is returned as it came. Among more than t errors
## there are always some that look like fewer from another code word: they are
## corrected to that word, and nothing tells.

function [corrected, errors] = BCH_decode (code, word)
  corrected = word;
  syndrome = BCH_syndrome (code, word);
  if (! any (syndrome))
    errors = 0;
    return;
  endif
  try
    places = code.search (code, BCH_berlekamp (code.field, syndrome));
    corrected(places) = 1 - corrected(places);
    errors = numel (places);
  catch failure
    if (! strcmp (failure.identifier, "BCH:uncorrectable"))
      rethrow (failure);
    endif
    errors = -1;
  end_try_catch
endfunction

%!shared code, word
%! code = BCH_setup (63, 45, 3);
%! word = BCH_encode (code, mod (1:45, 7) < 3);
%!test # no error
%! [corrected, errors] = BCH_decode (code, word);
%! assert (corrected, word);
%! assert (errors, 0);
%!test # one, two and three errors, in the message, the parity, and both
%! for places = {1, 63, [1 2], [45 46], [62 63], [1 32 63], [7 8 9], [46 50 60]}
%!   received = word;
%!   received(places{1}) = 1 - received(places{1});
%!   [corrected, errors] = BCH_decode (code, received);
%!   assert (corrected, word);
%!   assert (errors, numel (places{1}));
%! endfor
%!test # four errors: told, or another code word at most three bits away
%! told = 0;
%! for i = 1:15
%!   received = word;
%!   received(i * (1:4)) = 1 - received(i * (1:4));
%!   [corrected, errors] = BCH_decode (code, received);
%!   if (errors < 0)
%!     assert (corrected, received);
%!     told += 1;
%!   else
%!     assert (BCH_syndrome (code, corrected), zeros (1, 6));
%!     assert (sum (corrected != received), errors);
%!     assert (! isequal (corrected, word));
%!   endif
%! endfor
%! assert (told > 0);
%!test # an error that is not about the word goes on to the caller
%! broken = code;
%! broken.search = @(code, locator) error ("other:trouble", "trouble");
%! received = word;
%! received(1) = 1 - received(1);
%! fail ("BCH_decode (broken, received)", "trouble");
