// expected-error@+1 {{name 'b' stands twice; rename one of the two}}
