BbzJ
