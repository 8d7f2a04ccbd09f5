BrowsJ·дк@vсA·дKAф╣~Awс≤A
L╡а