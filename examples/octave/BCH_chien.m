## usage: places = BCH_chien (code, locator)
##
## Where a word of the code has its errors, as indexes into the word in falling
## order, by Chien's search.
##
## The locator is evaluated in alpha^0, alpha^-1, ..., alpha^(1-n) one after the
## other, with a register for each term: a step multiplies the register of x^i
## by alpha^-i, and the registers' sum is the value (Chien, "Cyclic decoding
## procedures for Bose-Chaudhuri-Hocquenghem codes", 1964). The search ends with
## the last root. With fewer roots than the degree there is no such error: an
## error "BCH:uncorrectable".

function places = BCH_chien (code, locator)
  field = code.field;
  degree = numel (locator) - 1;
  step = GF_pow (field, 2, -(degree:-1:0));
  registers = locator;
  places = [];
  for j = 0:code.n - 1
    if (numel (places) == degree)
      return;
    elseif (sum_of (registers) == 0)
      places(end+1) = code.n - j;
    endif
    registers = GF_mul (field, registers, step);
  endfor
  if (numel (places) != degree)
    error ("BCH:uncorrectable", "BCH_chien: fewer roots than the degree of the locator");
  endif
endfunction

function total = sum_of (registers)
  total = registers(1);
  for register = registers(2:end)
    total = GF_add (total, register);
  endfor
endfunction

%!shared code, locator
%! code = BCH_setup (15, 7, 2);
%! locator = @(a, b) GF_polymul (code.field, [GF_pow(code.field, 2, a) 1], ...
%!                               [GF_pow(code.field, 2, b) 1]);
%!test # errors at x^a and x^b
%! for a = 0:13
%!   for b = a + 1:14
%!     assert (BCH_chien (code, locator (a, b)), 15 - [a b]);
%!   endfor
%! endfor
%!assert (BCH_chien (code, 1), [])
%!error <fewer roots than the degree> BCH_chien (code, locator (3, 3))
%!error <fewer roots than the degree> BCH_chien (code, [1 1 1 1])
