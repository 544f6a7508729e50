package clock

// SinceBoot reads the second clock of the system.
var SinceBoot = sinceBoot
