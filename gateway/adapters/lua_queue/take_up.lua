-- A grant has reached its gateway. ARGV[4] the id. Reply: an ANSWER; unknown where it came too late.
return done({taken_up(ARGV[4])})
