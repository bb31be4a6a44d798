% Puts the steps of building a house in an order in which each comes after what it needs.
%
% There are two ways: slow/1 makes an order and then looks whether it is right; fast/1 takes only steps
% of which all is there. Both find the same orders.

:- module(scheduler, [slow/1, fast/1, slow/0, fast/0]).
:- use_module(library(lists)).

% needs(Step, Steps): what has to be done before.

needs(inspection, [wiring, plumbing, painting]).
needs(painting,   [plaster]).
needs(plaster,    [wiring, plumbing]).
needs(wiring,     [roof]).
needs(plumbing,   [walls]).
needs(roof,       [walls]).
needs(walls,      [foundation]).
needs(foundation, []).

steps(Steps) :- findall(Step, needs(Step, _), Steps).

% Makes an order, then looks.

slow(Order) :-
    steps(Steps),
    arrange(Steps, Order),
    right(Order, []).

arrange([], []).
arrange(Steps, [Step|Order]) :-
    take(Step, Steps, Rest),
    arrange(Rest, Order).

take(Step, [Step|Rest], Rest).
take(Step, [Other|Steps], [Other|Rest]) :-
    take(Step, Steps, Rest).

right([], _).
right([Step|Order], Done) :-
    ready(Step, Done),
    right(Order, [Step|Done]).

ready(Step, Done) :-
    needs(Step, Needed),
    all_done(Needed, Done).

all_done([], _).
all_done([Step|Steps], Done) :-
    memberchk(Step, Done),
    all_done(Steps, Done).

% Looks at every step as it is taken.

fast(Order) :-
    steps(Steps),
    arrange(Steps, [], Order).

arrange([], _, []).
arrange(Steps, Done, [Step|Order]) :-
    take(Step, Steps, Rest),
    ready(Step, Done),
    arrange(Rest, [Step|Done], Order).

% For the command line: the first order.

slow :- slow(Order), !, print_order(Order).
fast :- fast(Order), !, print_order(Order).

print_order(Order) :-
    atomic_list_concat(Order, ', ', Text),
    writeln(Text).
