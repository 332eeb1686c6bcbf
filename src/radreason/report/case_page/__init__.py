"""One diagnosis on a page that a radiologist can check, in four steps with a file for each.

content     what the page says, as plain data: the JSON beside the page is this and nothing else
answers     asks a run, so that the content is filled
pictures    draws the image, the grades and the reasons
template    lays the page out; no script, two pages of A4
"""
