vim9script
# Run by tests/editors.sh: a Vim without a screen, on the real sidecar. Writes a line a test to $KERN_TEST_OUT; any failure is the exit status 1.

set nocompatible hidden
&runtimepath = expand('<sfile>:p:h:h') .. ',' .. &runtimepath
runtime plugin/kern.vim

const PROJECT = $KERN_TEST_DIR .. '/project'
const OUT = $KERN_TEST_OUT
mkdir(PROJECT .. '/.git', 'p')

def Shown(): string
  return join(getbufline('kern://output', 1, '$'), "\n")
enddef

def Clear()
  if bufexists('kern://output')
    deletebufline('kern://output', 1, '$')
  endif
enddef

def WaitFor(pattern: string)
  for _ in range(6000)
    if Shown() =~ pattern
      return
    endif
    sleep 10m
  endfor
  throw pattern .. ' did not come; there is: ' .. Shown()[: 500]
enddef

# Runs a command in the buffer and waits for its end; gives what the output buffer has.
def Ran(command: string): string
  Clear()
  execute command
  WaitFor('\n--- [^\n]*\n$')
  return Shown()
enddef

def Edit(name: string, lines: list<string>)
  writefile(lines, PROJECT .. '/' .. name)
  execute 'edit! ' .. PROJECT .. '/' .. name
  cursor(1, 1)
enddef

def Test_cells_share_a_kernel()
  Edit('cells.py', ['x = 20', '# %% one', 'print("got", x)', 'x += 1', '# %% two', 'x * 2'])
  set filetype=python
  Ran('KernCell')
  cursor(3, 1)
  assert_match('^--- cells.py, lines 2 to 4\ngot 20\n--- python \[2\]: ok, \d\.\d\d s\n$', Ran('KernCell'))
  cursor(6, 1)
  assert_match('\n42\n---', Ran('KernCell'))
  assert_equal('kern: idle', kern#Status())
  assert_match('NameError', Ran(':6KernBox'))
enddef

def Test_errors_are_in_the_quickfix_list_at_their_line()
  Edit('helper.py', ['def half(x):', '    return x / 0'])
  Edit('err.py', ['# %%', 'import helper', 'if True:', '    y = 5; print(y)', '    helper.half(y)', '# %%', 'x = = 1'])
  set filetype=python
  Ran(':1,5KernRun')
  var list = getqflist()
  assert_equal([[5, 'err.py'], [2, 'helper.py']], mapnew(list, (_, item) => [item.lnum, fnamemodify(bufname(item.bufnr), ':t')]))
  assert_equal('ZeroDivisionError: division by zero', list[0].text)
  cursor(7, 1)
  Ran('KernCell')
  assert_equal([7], mapnew(getqflist(), (_, item) => item.lnum))
  assert_match('\n5\n---.*ok', Ran(':4KernRun')) # indented
  assert_equal([], getqflist())
  Edit('err.sh', ['echo fine', 'no-such-program'])
  set filetype=sh
  Ran('KernFile')
  assert_equal([[2, 'no-such-program: command not found']], mapnew(getqflist(), (_, item) => [item.lnum, item.text]))
enddef

def Test_interrupt_keeps_the_state_and_restart_does_not()
  Edit('slow.py', ['kept = 7', 'import time', '# %%', 'print("on", flush=True)', 'while True: time.sleep(0.01)', '# %%', 'kept'])
  set filetype=python
  cursor(1, 1)
  Ran('KernCell')
  Clear()
  cursor(4, 1)
  KernCell
  WaitFor('\non\n')
  assert_equal('kern: busy', kern#Status())
  KernInterrupt
  WaitFor('interrupted, ')
  cursor(7, 1)
  assert_match('\n7\n---', Ran('KernCell'))
  KernRestart
  assert_match('NameError', Ran('KernCell'))
  g:kern = {timeout_s: 1}
  KernRestart
  assert_match('python box: timeout: ', Ran(':2,5KernBox'))
  g:kern = {timeout_s: 1, network: 2}
  assert_match('g:kern.network: 2 will not do', execute('KernCell'))
  g:kern = {}
enddef

def Test_a_cell_asks()
  Edit('ask.py', ['import getpass', 'print([input("\x1b[1mname? "), getpass.getpass("word? "), input()])', '# %%', 'input("?")'])
  set filetype=python
  feedkeys("Ädä\<CR>geheim\<CR>\<CR>", 't')
  assert_match("\n\\['Ädä', 'geheim', ''\\]\n---.*ok", Ran('KernCell'))
  assert_match('EOFError', Ran('KernFile'))
enddef

def Test_what_the_code_can_reach()
  mkdir($KERN_TEST_DIR .. '/outside', 'p')
  Edit('reach.py', ['import os', 'def can(name):', '    try: open(name, "w"); return True', '    except OSError: return False',
    'print(can("made"), can(".git/hook"), os.path.exists("' .. $KERN_TEST_DIR .. '/outside"), "KERN_TEST_OUT" in os.environ, os.getcwd())'])
  set filetype=python
  KernRestart
  assert_match('\nTrue False False False /workspace\n', Ran('KernFile'))
  assert_true(filereadable(PROJECT .. '/made'))
  g:kern = {workspace: 'readonly'}
  KernRestart
  assert_match('\nFalse False False False /project\n', Ran('KernFile'))
  g:kern = {workspase: 'readonly'}
  assert_match('g:kern.workspase: no such setting', execute('KernFile'))
  g:kern = {}
  KernRestart
enddef

def Test_images_long_output_and_escapes()
  Edit('rich.py', ['import struct, zlib', 'def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))',
    'class Png:', '    def _repr_png_(self): return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")',
    'print("\x1b[31mred\x1b[0m\n50%\r100%")', 'Png()', '# %%', 'for i in range(20000): print(i)',
    '# %%', 'import os', 'class Big: # longer than a line of the protocol',
    '    def _repr_png_(self): return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1300, 1000, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + os.urandom(3900) for _ in range(1000)), 0)) + chunk(b"IEND", b"")',
    'Big()'])
  set filetype=python
  cursor(1, 1)
  var shown = Ran('KernCell')
  assert_match('\nred\n100%\n\[image\] ', shown)
  assert_equal(0z89504E47, readblob(matchstr(shown, '\[image\] \zs[^\n]*'))[: 3])
  cursor(8, 1)
  Ran('KernCell')
  assert_equal(10000, len(getbufline('kern://output', 1, '$')))
  cursor(10, 1)
  assert_true(getfsize(matchstr(Ran('KernCell'), '\[image\] \zs[^\n]*')) > 3900000)
  wincmd b
  assert_equal('kern://output', bufname())
  KernRestart
  wincmd t
  cursor(6, 1)
  assert_match('NameError', Ran('KernRun'))
enddef

def Test_doctor_and_a_sidecar_that_is_lost_or_wrong()
  Edit('last.py', ['1 + 1'])
  set filetype=python
  KernDoctor
  for _ in range(6000)
    if getline(3) =~ '^Boxes '
      break
    endif
    sleep 10m
  endfor
  assert_equal('Boxes start here.', getline(3))
  close
  wincmd t
  Ran('KernCell')
  system('kill -KILL ' .. job_info(job_info()[0]).process)
  for _ in range(6000)
    if kern#Status() == 'kern: ready'
      break
    endif
    sleep 10m
  endfor
  assert_match('\n2\n', Ran('KernCell'))
  job_stop(job_info()[0], 'kill')
  while kern#Status() != 'kern: ready'
    sleep 10m
  endwhile
  g:kern = {program: '/nonexistent'}
  assert_match('is not the absolute path of a program', execute('KernCell'))
  g:kern = {}
enddef

var failed = 0
for name in readfile(expand('<sfile>:p'))->mapnew((_, line) => matchstr(line, '^def \zsTest_\w\+'))->filter((_, found) => found != '')
  v:errors = []
  try
    call(function(name), [])
  catch
    add(v:errors, v:throwpoint .. ': ' .. v:exception)
  endtry
  failed += empty(v:errors) ? 0 : 1
  writefile([(empty(v:errors) ? 'ok ' : 'FAILED ') .. name] + v:errors, OUT, 'a')
endfor
execute failed == 0 ? 'qall!' : 'cquit!'
