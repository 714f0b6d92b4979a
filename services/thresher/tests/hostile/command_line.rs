//! What a newcomer meets at the command line: added Sources run, many Sources at once, closed pipes.
