"""The pictures of the paper, from runs of one's own: each file draws one of them, `make` all that fit.

attribute_sheet   slices of cases, one for every grade of every attribute
answers           what several methods say of the same test cases
radars            grades of the truth and of methods as radar charts, a spoke for each variable
bars              findings that are there or not as coloured bars, the disease as ticks and crosses
importances       how much each attribute bears on the diagnosis, as histograms
networks          the networks that were learned, with the share of resamples behind each edge
framework         the whole model with the shapes of this run
"""
