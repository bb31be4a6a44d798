## usage: text = ber_table (code, curve)
##
## A curve of ber_curve as text: a line for each signal-to-noise ratio, with the
## rates that were simulated beside those of theory.
##
## A "!" follows a rate that is not believable if theory holds (see agrees).
## There is no simple formula for the message bits wrong after decoding, so that
## column has no theory beside it; where none was wrong, it says so with "-".

function text = ber_table (code, curve)
  theory = ber_theory (code, [curve.ebn0_db]);
  bits = [curve.blocks] * code.k;
  columns = [
    ratio_column("Eb/N0 dB", [curve.ebn0_db]), ...
    rate_columns("uncoded", [curve.uncoded_errors], bits, theory.uncoded), ...
    rate_columns("channel", [curve.channel_errors], [curve.blocks] * code.n, theory.channel), ...
    rate_columns("block", [curve.block_errors], [curve.blocks], theory.block), ...
    plain_column("coded", [curve.coded_errors] ./ bits), ...
    number_column("told", [curve.told])];
  lines = arrayfun (@(i) [columns{i, :}], 1:rows (columns), "UniformOutput", false);
  text = [strjoin(lines, "\n"), "\n"];
endfunction

function cells = ratio_column (title, ratios)
  cells = [{sprintf("%8s", title)}; print_each("%8.1f", ratios)];
endfunction

function cells = rate_columns (title, counts, trials, chances)
  signs = " !"(2 - agrees (counts, trials, chances));
  rates = arrayfun (@(rate, sign) sprintf ("%11.2e%c", rate, sign), ...
                    counts ./ trials, signs, "UniformOutput", false);
  cells = [{sprintf("%11s ", title)}, {sprintf("%9s", "theory")}; ...
           rates', print_each("%9.2e", chances)];
endfunction

function cells = plain_column (title, rates)
  printed = print_each ("%11.2e", rates);
  printed(rates == 0) = {sprintf("%11s", "-")};
  cells = [{sprintf("%11s", title)}; printed];
endfunction

function cells = number_column (title, numbers)
  cells = [{sprintf("%8s", title)}; print_each("%8d", numbers)];
endfunction

function cells = print_each (format, numbers)
  cells = arrayfun (@(number) sprintf (format, number), numbers', "UniformOutput", false);
endfunction

%!test
%! code = struct ("n", 15, "k", 7, "t", 2);
%! point = struct ("ebn0_db", 0, "blocks", 1000, "uncoded_errors", 551, ...
%!                 "channel_errors", 3000, "coded_errors", 0, "block_errors", 540, ...
%!                 "beyond", 540, "told", 98);
%! expected = [ ...
%! "Eb/N0 dB    uncoded    theory    channel    theory" ...
%! "      block    theory      coded    told\n" ...
%! "     0.0   7.87e-02  7.86e-02   2.00e-01! 1.67e-01" ...
%! "   5.40e-01! 4.69e-01          -      98\n"];
%! assert (ber_table (code, point), expected);
