-- Neovim: the cell in the kernel of the project, until its end stands under it.
local function touch(name)
  vim.fn.writefile({}, os.getenv('KERN_PLACE') .. '/' .. name)
end

vim.cmd('runtime plugin/kern.lua | edit code.py')
vim.bo.filetype = 'python'
touch('begun')
vim.cmd('KernRun')
vim.wait(3600000, function()
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace('kern'), 0, -1, { details = true })) do
    for _, line in ipairs(mark[4].virt_lines or {}) do
      if line[1][1]:find('── ok', 1, true) then
        return true
      end
    end
  end
end, 1)
touch('shown')
vim.wait(3600000)
