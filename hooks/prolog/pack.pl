name(treering).
version('0.1.0').
title('Call-graph profiler: the whole tree, and exact ports').
keywords([profiler, 'call graph', ports]).
author('The Treering developers', 'treering@example.org').
packager('The Treering developers', 'treering@example.org').
maintainer('The Treering developers', 'treering@example.org').
requires(prolog >= '9.0.4').
