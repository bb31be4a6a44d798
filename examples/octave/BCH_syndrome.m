## usage: s = BCH_syndrome (code, word)
##
## The 2t syndromes of a received word: its values in alpha, ..., alpha^(2t).
##
## Zero for code words only. WORD is one row of n bits. As its coefficients are
## bits, s(2j) is the square of s(j), so that only odd ones are evaluated.

function s = BCH_syndrome (code, word)
  field = code.field;
  odd = 1:2:2 * code.t;
  s = zeros (1, 2 * code.t);
  s(odd) = GF_polyeval (field, word, GF_pow (field, 2, odd));
  for j = 2:2:2 * code.t
    s(j) = GF_mul (field, s(j / 2), s(j / 2));
  endfor
endfunction

%!shared code, word
%! code = BCH_setup (31, 21, 2);
%! word = BCH_encode (code, mod (1:21, 3) == 1);
%!assert (BCH_syndrome (code, word), zeros (1, 4))
%!test # one error at x^j gives the powers of alpha^j
%! for j = 0:30
%!   received = word;
%!   received(31 - j) = ! received(31 - j);
%!   assert (BCH_syndrome (code, received), GF_pow (code.field, 2, j * (1:4)));
%! endfor
%!test # even ones agree with an evaluation
%! received = mod (1:31, 5) == 2;
%! expected = GF_polyeval (code.field, received, GF_pow (code.field, 2, 1:4));
%! assert (BCH_syndrome (code, received), expected);
