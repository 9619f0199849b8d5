-- Commands; what they do is loaded at their first use.
if vim.g.loaded_kern then
  return
end
vim.g.loaded_kern = true

local function command(name, run, options)
  vim.api.nvim_create_user_command(name, run, options)
end

command('KernRun', function(given)
  local ranged = given.range > 0
  require('kern').run(ranged and given.line1 or nil, ranged and given.line2 or nil, given.bang)
end, { range = true, bang = true, desc = 'Runs the cell, or the lines of the range, in the kernel; with ! in a fresh box' })
command('KernFile', function(given) require('kern').run_file(given.bang) end, { bang = true, desc = 'Runs the file in a fresh box; with ! in the kernel' })
command('KernInterrupt', function() require('kern').interrupt() end, { desc = 'Stops what runs; a kernel keeps its state' })
command('KernRestart', function() require('kern').restart() end, { desc = 'Gives the kernel of this language a new interpreter' })
command('KernOutput', function() require('kern').toggle_output() end, { desc = 'Opens or closes the window with all output' })
command('KernClear', function() require('kern').clear() end, { desc = 'Removes output and errors from this buffer' })
command('KernStop', function() require('kern').stop() end, { desc = 'Ends the sidecar, with all boxes and kernels' })
