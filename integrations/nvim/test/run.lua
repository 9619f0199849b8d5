-- Drives the plug-in in a headless editor, on the real sidecar. Prints a line for each test; the exit status is 1 if one failed.
vim.cmd('runtime plugin/kern.lua')
local kern = require('kern')
local output = require('kern.output')
local region = require('kern.region')
local session = require('kern.session')
local text = require('kern.text')

local top = os.getenv('KERN_TEST_DIR')
local failures = 0

local function until_(what, condition) -- generous: the machine may be busy
  if not vim.wait(30000, condition, 10) then
    error(what .. ' did not come', 2)
  end
end

local function equal(found, wanted, what)
  if not vim.deep_equal(found, wanted) then
    error(('%s: %s wanted, found %s'):format(what or 'value', vim.inspect(wanted):sub(1, 300), vim.inspect(found):sub(1, 300)), 2)
  end
end

local function has(found, part)
  if not found:find(part, 1, true) then
    error(('%s is not in %s'):format(part, found:sub(-600)), 2)
  end
end

local function test(name, body)
  local fine, wrong = xpcall(body, debug.traceback)
  io.stdout:write((fine and 'ok - ' or 'not ok - ') .. name .. '\n')
  if not fine then
    failures = failures + 1
    io.stdout:write('  ' .. wrong:sub(1, 1500):gsub('\n', '\n  ') .. '\n')
  end
end

local projects = 0
local function file(name, content)
  projects = projects + 1
  local directory = ('%s/project-%d'):format(top, projects)
  vim.fn.mkdir(directory .. '/.git', 'p')
  vim.fn.mkdir(directory .. '/src', 'p')
  vim.cmd('edit! ' .. directory .. '/src/' .. name)
  vim.bo.filetype = name:match('%.py$') and 'python' or name:match('%.js$') and 'javascript' or name:match('%.ts$') and 'typescript' or name:match('%.sh$') and 'sh' or 'other'
  vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(content, '\n'))
  return directory
end

--- What stands under the lines of the buffer, as text.
local function under()
  local lines = {}
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, output.namespaces.marks, 0, -1, { details = true })) do
    for _, virtual in ipairs(mark[4].virt_lines or {}) do
      table.insert(lines, virtual[1][1])
    end
  end
  return table.concat(lines, '\n')
end

local function ended(what)
  until_(what or 'the end', function()
    return under() ~= '' and not under():find('── running', 1, true) and kern.statusline() ~= 'kern: busy'
  end)
  return under()
end

local function run(command)
  vim.cmd('KernClear')
  vim.cmd(command)
  return ended(command)
end

local function alive(pid)
  local status = io.open(('/proc/%d/stat'):format(pid))
  local line = status and status:read('*a') or ''
  if status then
    status:close()
  end
  return line ~= '' and not line:match('%) Z ')
end

test('regions: cells, ranges, indentation', function()
  file('cells.py', 'import os\n# %% one\na = 1\n\n#%% two\nif a:\n    b = 2\n\n    c = 3\n')
  equal({ region.around(0, 1).first, region.around(0, 1).last }, { 1, 1 })
  equal({ region.around(0, 2).first, region.around(0, 4).last }, { 2, 4 })
  equal({ region.around(0, 7).first, region.around(0, 7).last }, { 5, 10 })
  equal(region.lines(0, 7, 9).text, 'b = 2\n\nc = 3\n')
  equal(region.lines(0, 7, 9).indent, 4)
end)

test('texts: base64 of every remainder, terminals, lines that were written over', function()
  equal({ text.decode64(''), text.decode64('YQ=='), text.decode64('YWI='), text.decode64('YWJj'), text.decode64('AP8Q\ngA==') }, { '', 'a', 'ab', 'abc', '\0\255\16\128' })
  equal(text.lines('10%\r50%\r100%\nred: \27[1;31mx\27[0m\27]0;title\7\r\nend'), { '100%', 'red: x', 'end' })
  equal(text.lines('\n\na\n'), { '', '', 'a' })
  equal({ text.lines(''), text.lines('\n'), text.lines('a'), text.lines('a\n\n') }, { {}, { '' }, { 'a' }, { 'a', '' } })
end)

test('a cell, a line and a selection in one kernel; the last value is shown', function()
  file('state.py', '# %%\nx = 20\nprint("set")\n# %%\nx * 2 + 2\n# %%\ndef f():\n    y = x + 1\n    print(y)')
  vim.fn.cursor(3, 1)
  has(run('KernRun'), 'set\n── ok, ')
  vim.fn.cursor(5, 1)
  has(run('KernRun'), '42\n── ok, ')
  has(run('8,9KernRun'), '21\n── ok, ')
  equal(kern.statusline(), 'kern: idle')
  has(run('2KernRun!'), '── ok')
  has(run('5KernRun!'), "NameError: name 'x' is not defined") -- a box of its own has no state
end)

test('errors are diagnostics at their line, in a kernel and in a box, also when lines have moved; the next run takes them away', function()
  file('wrong.py', '# %%\nimport time\n# %%\ndef f():\n    return 1 / 0\nf()\n# %%\ntime.sleep(0.5)\nno_such')
  run('KernRun')
  vim.fn.cursor(4, 1)
  has(run('KernRun'), 'ZeroDivisionError')
  local found = vim.diagnostic.get(0)
  equal({ #found, found[1].lnum, found[1].message, found[1].source }, { 1, 4, 'ZeroDivisionError: division by zero', 'kern' })
  vim.fn.setline(5, '    return 1 / 1')
  run('KernRun')
  equal(vim.diagnostic.get(0), {})
  run('1KernRun')
  run('2KernRun')
  vim.cmd('KernClear')
  vim.cmd('8,9KernRun')
  vim.fn.append(0, { 'new', 'lines' })
  ended()
  equal(vim.diagnostic.get(0)[1].lnum, 10)
  vim.fn.deletebufline('%', 1, 2)
  vim.cmd('KernClear')
  vim.fn.setline(9, 'x = (')
  vim.cmd('KernFile')
  has(ended(), 'SyntaxError')
  equal(vim.diagnostic.get(0)[1].lnum, 8)
end)

test('a file in a fresh box: the project is there, the rest of the machine is not', function()
  vim.fn.writefile({ 'the secret' }, top .. '/secret')
  local project = file('box.py', ('import os\nprint(os.getcwd())\nopen("made.txt", "w").write("made")\ntry:\n  print(open(%q).read())\nexcept OSError as e: print("refused", e.errno)\nprint(os.environ.get("KERN_TEST_DIR"))'):format(top .. '/secret'))
  has(run('KernFile'), project .. '\nrefused 2\nNone\n── ok')
  equal(vim.fn.readfile(project .. '/made.txt'), { 'made' })
end)

test('output comes while the code runs; an interrupt ends the cell and keeps the state; a box is killed', function()
  file('live.py', 'import time\nx = 7; print("begun", flush=True); time.sleep(600)\nx')
  run('1KernRun')
  for _, command in ipairs({ '2KernRun', '1,2KernRun!' }) do
    vim.cmd('KernClear')
    vim.cmd(command)
    until_('live output', function() return under():find('begun', 1, true) end)
    equal(kern.statusline(), 'kern: busy')
    vim.cmd('KernInterrupt')
    has(ended(), command:match('!') and '── cancelled' or '── interrupted')
  end
  has(run('3KernRun'), '7\n── ok')
end)

test('a cell asks: answered, hidden, not answered; a box has no input', function()
  local asked = {}
  local input, secret = vim.ui.input, vim.fn.inputsecret
  vim.ui.input = function(options, done) table.insert(asked, options.prompt); done(options.prompt == 'kern: name? ' and 'Ädä' or '') end
  vim.fn.inputsecret = function(prompt) table.insert(asked, { prompt }); return 'geheim' end
  file('ask.py', 'import getpass; print(input("\\x1b[1mname? "), getpass.getpass("word? "), repr(input()))\ninput("?")\ninput("kept? ")\n')
  has(run('1KernRun'), "Ädä geheim ''\n── ok")
  equal(asked, { 'kern: name? ', { 'kern: word? ' }, 'kern: ' })
  vim.ui.input = function() error('Keyboard interrupt') end
  has(run('2KernRun'), 'EOFError')
  vim.ui.input = input
  vim.api.nvim_input('typed<CR>') -- into the editor's own
  has(run('3KernRun'), "'typed'\n── ok")
  local late
  vim.ui.input = function(_, done) late = done end
  vim.cmd('KernClear')
  vim.cmd('3KernRun')
  until_('the question', function() return late end)
  vim.cmd('KernInterrupt')
  has(ended(), '── interrupted')
  late('too late')
  vim.ui.input, vim.fn.inputsecret = input, secret
  has(run('3KernRun!'), 'EOFError')
end)

test('restart: a new interpreter', function()
  file('restart.py', 'x = 1\nx')
  run('1KernRun')
  local done
  kern.restart(function(err) done = { err } end)
  until_('the restart', function() return done end)
  equal(done, {})
  has(run('2KernRun'), 'NameError')
end)

test('a kernel that ends: said, and the next cell has another', function()
  file('dead.py', 'import os; os._exit(3)\n1 + 1')
  run('1KernRun')
  until_('its end', function() return kern.statusline() == 'kern: dead' end)
  has(run('2KernRun'), '2\n── ok')
end)

test('images are files, and go to an image plug-in', function()
  local given = {}
  package.loaded.image = { from_file = function(path, options) return { render = function() given = { path, options.y, options.buffer } end } end }
  file('image.py', [=[
import os, struct, zlib
class Noise:
    def _repr_png_(self):
        part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        lines = b"".join(b"\0" + os.urandom(800) for _ in range(700))
        return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", 800, 700, 8, 0, 0, 0, 0)) + part(b"IDAT", zlib.compress(lines)) + part(b"IEND", b"")
class Wrong:
    def _repr_png_(self): return b"no image"
display(Wrong())
Noise()]=])
  local shown = run('KernRun')
  package.loaded.image = nil
  local path = shown:match('image: (%S+%.png)')
  has(shown, 'image: ')
  local saved = io.open(path, 'rb')
  local bytes = saved:read('*a')
  saved:close()
  equal({ #bytes > 500000, bytes:sub(1, 4), bytes:sub(17, 24), bytes:sub(-8, -5) }, { true, '\137PNG', '\0\0\3\32\0\0\2\188', 'IEND' })
  has(shown, 'image/png is left out: no PNG')
  equal(given, { path, 9, vim.api.nvim_get_current_buf() })
end)

test('much output: all of it in the buffer, the end of it under the cell', function()
  file('much.py', 'for i in range(50000): print(i)')
  local shown = run('KernRun')
  has(shown, '… 49988 more lines: :KernOutput\n49988\n')
  has(shown, '\n49999\n── ok')
  local log = vim.api.nvim_buf_get_lines(vim.fn.bufnr('kern://output'), -50002, -1, false)
  equal({ log[1], log[50000] }, { '0', '49999' })
  vim.cmd('KernOutput')
  equal(#vim.fn.win_findbuf(vim.fn.bufnr('kern://output')), 1)
  vim.cmd('KernOutput')
  equal(#vim.fn.win_findbuf(vim.fn.bufnr('kern://output')), 0)
end)

test('other languages; a file of none', function()
  file('a.js', 'const x = 20;\nx + 1')
  has(run('1,2KernRun'), '21\n── ok')
  file('a.sh', 'y=5\necho "y is $y"')
  has(run('1,2KernRun'), 'y is 5\n── ok')
  file('a.ts', 'const z: number = 4;\nconsole.log(z + 1)')
  local typed = run('1,2KernRun') -- in a box: there is no kernel of it
  has(typed, typed:find('TypeScript needs node', 1, true) and '── exit code 1' or '5\n── ok')
  file('a.txt', 'x')
  local told
  local notify = vim.notify
  vim.notify = function(words) told = words end
  vim.cmd('KernRun')
  vim.notify = notify
  has(told, 'no language for files of type "other"')
end)

test('the sidecar is killed: the run says so, the next one has a new sidecar', function()
  file('lost.py', 'print("begun", flush=True); import time; time.sleep(600)\n3 + 3')
  vim.cmd('1KernRun')
  until_('output', function() return under():find('begun', 1, true) end)
  local pid = session.client().pid
  vim.loop.kill(pid, 9)
  has(ended(), '── sidecar_lost: ')
  until_('its end', function() return not alive(pid) end)
  has(run('2KernRun'), '6\n── ok')
end)

test('what is wrong is said: a program that is not there, a setting, a project that may not be in a box', function()
  kern.stop()
  kern.setup({ program = '/no/such/program' })
  file('none.py', '1')
  has(run('KernRun'), '── program_not_found: /no/such/program is no program')
  equal((pcall(kern.setup, { timeout = 1 })), false)
  equal((pcall(kern.setup, { output = 'left' })), false)
  kern.setup({ session = { memoryMb = 'much' } })
  has(run('KernRun'), '── invalid_type: memoryMb')
  kern.setup({ session = { workspace = '/etc' } })
  has(run('KernRun'), '── ')
  has(under(), '/etc')
  kern.setup({})
  has(run('KernRun'), '1\n── ok')
end)

test('output in a split instead, while the code runs; of two runs each has its own', function()
  kern.setup({ output = 'split' })
  file('split.py', 'import time; print("begun", flush=True); time.sleep(1); print("over")\nprint("next")')
  local function log(part)
    return table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr('kern://output'), -12, -1, false), '\n'):find(part, 1, true)
  end
  vim.cmd('1KernRun')
  until_('live output', function() return log('split.py:1-1\nbegun\n── running') end)
  equal(#vim.fn.win_findbuf(vim.fn.bufnr('kern://output')), 1)
  until_('the end', function() return log('split.py:1-1\nbegun\nover\n── ok') end)
  vim.cmd('1KernRun')
  vim.cmd('2KernRun')
  until_('both', function() return log('split.py:1-1\nbegun\nover\n── ok') and log('next\n── ok') and kern.statusline() == 'kern: idle' end)
  equal(under(), '')
  vim.cmd('KernOutput')
  kern.setup({})
end)

test(':checkhealth and the help page', function()
  vim.cmd('checkhealth kern')
  local report = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  has(report, 'kern')
  has(report, 'OK')
  vim.cmd('bwipeout!')
  vim.cmd('help :KernRun')
  has(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n'), ':KernInterrupt')
  vim.cmd('close')
end)

kern.stop()
io.stdout:write(failures == 0 and 'all tests passed\n' or ('%d tests failed\n'):format(failures))
vim.cmd(failures == 0 and 'qall!' or 'cquit')
