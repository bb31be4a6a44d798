## usage: text = ber_plot (ebn0_db, rates, marks)
## usage: text = ber_plot (ebn0_db, rates, marks, decades)
##
## Curves of error rates drawn with characters.
##
## RATES has a row for each curve and a column for each of the signal-to-noise
## ratios EBN0_DB, in decibels and rising; MARKS has a character for each curve.
## The vertical axis is logarithmic, from 1 down through DECADES decades, 4 by
## default, with six lines each; rates below it, as none, are left out. Where
## curves meet, the later one is seen.

function text = ber_plot (ebn0_db, rates, marks, decades = 4)
  per_decade = 6;
  width = 6;
  paper = repmat (" ", decades * per_decade + 1, width * numel (ebn0_db));
  for curve = 1:rows (rates)
    line = round (-log10 (rates(curve, :)) * per_decade) + 1;
    seen = find (line >= 1 & line <= rows (paper));
    paper(sub2ind (size (paper), line(seen), width * seen - 2)) = marks(curve);
  endfor
  text = [axis_labels(decades, per_decade), paper, repmat("\n", rows (paper), 1)]'(:)';
  text = [text, below(ebn0_db, width)];
endfunction

## A label at each whole decade.
function labels = axis_labels (decades, per_decade)
  labels = repmat ("       |", decades * per_decade + 1, 1);
  for decade = 0:decades
    labels(1 + decade * per_decade, :) = sprintf ("1e-%02d  +", decade);
  endfor
endfunction

function text = below (ebn0_db, width)
  line = repmat ("-", 1, width * numel (ebn0_db));
  ratios = sprintf ("%*.1f", [repmat(width, 1, numel (ebn0_db)); ebn0_db]);
  text = sprintf ("       +%s\n        %s   Eb/N0 dB\n", line, ratios);
endfunction

%!test
%! text = ber_plot ([0 1.5], [0.1 0.01; 1 0], "uc", 2);
%! expected = [
%!   "1e-00  +   c        \n" ...
%!   "       |            \n" ...
%!   "       |            \n" ...
%!   "       |            \n" ...
%!   "       |            \n" ...
%!   "       |            \n" ...
%!   "1e-01  +   u        \n" ...
%!   "       |            \n" ...
%!   "       |            \n" ...
%!   "       |            \n" ...
%!   "       |            \n" ...
%!   "       |            \n" ...
%!   "1e-02  +         u  \n" ...
%!   "       +------------\n" ...
%!   "           0.0   1.5   Eb/N0 dB\n"];
%! assert (text, expected);
