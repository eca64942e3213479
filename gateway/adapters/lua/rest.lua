-- What the usual cases do without.
local MONEY = KEYS[3]
local RECENT = KEYS[4]
