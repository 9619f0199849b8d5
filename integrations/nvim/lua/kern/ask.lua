-- A question of the code: a line from whoever sits there.
local text = require('kern.text')

local M = {}

--- done(line), or done(nil): there is no answer. The prompt is the code's, so it is said who asks.
function M.line(prompt, password, done)
  local words, answered = 'kern: ' .. table.concat(text.lines(prompt), ' '), false
  local function once(line)
    if not answered then
      answered = true
      done(line)
    end
  end
  local fine = pcall(function()
    if password then
      return once(vim.fn.inputsecret(words))
    end
    vim.ui.input({ prompt = words }, function(line)
      -- before 0.8 Enter alone and Escape are the same
      once(line or vim.fn.has('nvim-0.8') == 0 and '' or nil)
    end)
  end)
  if not fine then -- Ctrl-C
    once(nil)
  end
end

return M
