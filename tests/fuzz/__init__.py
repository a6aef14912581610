"""A fuzzer of the command line: every command, with bad inputs, options, models and surroundings.

    python -m tests.fuzz --seconds 60 --seed 1

commands.py   finds the commands and their parameters in the table of commands
roles.py      what a parameter stands for, and good values for it
samples.py    small good files, and a tiny model of every kind, to start from
case.py       one test case: a command line, the files around it, what else is odd
contents.py   bad bytes for inputs
damage.py     damaged models
generate.py   the list of cases that a seed stands for
sandbox.py    runs a case in a fork of this warm process, with limits
judge.py      says whether a command behaved
reduce.py     makes a failing case smaller
report.py     the table of what was tried, and lines of shell for each fault
run.py        puts them together
"""
