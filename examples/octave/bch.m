## usage: bch ()
## usage: bch (blocks, parameters, ebn0_db, seed, search)
## usage: [curve, code] = bch (...)
##
## Simulates a communication system: messages are encoded by a BCH code, sent by
## BPSK through white Gaussian noise, decided bit by bit, and decoded.
##
##   blocks      messages at each signal-to-noise ratio, 200 by default
##   parameters  the code as [n k t], [15 7 2] by default; see BCH_setup
##   ebn0_db     signal-to-noise ratios Eb/N0 in decibels, 0:6 by default
##   seed        where the random numbers start, 1 by default; equal arguments
##               give equal results, and rand goes on after as if not used
##   search      how error places are found, @BCH_chien by default
##
## Without an output the result is printed as by ber_table.

function [curve, code] = bch (blocks = 200, parameters = [15 7 2], ebn0_db = 0:6, ...
                              seed = 1, search = @BCH_chien)
  if (! (isscalar (blocks) && blocks >= 1 && blocks == fix (blocks)))
    error ("BCH:parameters", "bch: the number of blocks must be an integer above zero");
  elseif (numel (parameters) != 3)
    error ("BCH:parameters", "bch: a code has three parameters, n, k and t");
  endif
  code = BCH_setup (num2cell (parameters){:}, search);
  state = rand ("twister");
  unwind_protect
    rand ("twister", seed);
    curve = ber_curve (code, ebn0_db(:)', blocks);
  unwind_protect_cleanup
    rand ("twister", state);
  end_unwind_protect
  if (nargout == 0)
    printf ("%s", ber_table (code, curve));
    clear curve code
  endif
endfunction

%!test # the same arguments, the same result, whichever way roots are found
%! curve = bch (10, [15 7 2], [0 3], 5);
%! assert (bch (10, [15 7 2], [0 3], 5), curve);
%! assert (bch (10, [15 7 2], [0 3], 5, @BCH_search), curve);
%! assert (! isequal (bch (10, [15 7 2], [0 3], 6), curve));
%!test # the caller's random numbers are not disturbed, also by a failure
%! rand ("twister", 4);
%! expected = rand (1, 3);
%! rand ("twister", 4);
%! curve = bch (2, [7 4 1], 3, 9);
%! assert (rand (), expected(1));
%! fail ("bch (2, [7 4 1], 0, 9, @(varargin) error ('trouble'))", "trouble");
%! assert (rand (), expected(2));
%!test # printed when nothing takes it
%! text = evalc ("bch (3, [7 4 1], [1 2])");
%! assert (numel (strsplit (text, "\n")), 4);
%! assert (strncmp (text, "Eb/N0 dB", 8));
%!error <integer above zero> bch (0)
%!error <integer above zero> bch (1.5)
%!error <three parameters> bch (1, [15 7])
%!error <messages of 7 bits, not 8> bch (1, [15 8 2])
