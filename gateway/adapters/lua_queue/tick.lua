-- Time has passed.
reap()
dispatch()
return done({})
