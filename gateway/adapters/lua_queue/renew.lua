-- A gateway lives and wants these. ARGV from [4] on: ids. Reply: an ANSWER for each, in their order.
reap()
dispatch()
local answers = {}
for at = 4, #ARGV do
  answers[at - 3] = renewed(load_ticket(ARGV[at]))
end
return done({answers})
