vim9script
# Runs lines, cells and files in a kernel or a box of their project. Each project has one session of the sidecar, and a kernel a
# language.

import autoload 'kern/sidecar.vim'
import autoload 'kern/cells.vim'
import autoload 'kern/show.vim'

const LANGUAGES = {python: 'python', javascript: 'node', typescript: 'typescript', sh: 'bash', bash: 'bash'}
const NO_KERNEL = ['typescript']
const MAX_OUTPUT_BYTES = 1 << 20
const DEFAULTS = {
  program: '', language: '', run_in: 'auto', workspace: 'folder', protect: ['.git', '.vscode'], markers: ['.git', '.hg', 'pyproject.toml', 'package.json'],
  network: false, memory_mb: 512, timeout_s: 30,
}

var sessions: dict<dict<any>> = {} # root, or '' -> {id, opened, waiting: [Go(error)], kernels: {language: id}}
var running: dict<dict<any>> = {} # runId -> {request, kernel, root, asked}
var handles = 0

def Forget()
  sessions = {}
enddef
add(sidecar.lost, Forget)

# A setting that is misspelt or wrong must not be ignored.
def CheckSettings()
  for name in keys(get(g:, 'kern', {}))
    if !has_key(DEFAULTS, name)
      throw printf('kern: g:kern.%s: no such setting; there are %s', name, join(sort(keys(DEFAULTS)), ', '))
    endif
    Setting(name)
  endfor
enddef

def Setting(name: string): any
  var ours = get(g:, 'kern', {})
  var value = get(ours, name, DEFAULTS[name])
  var choices = get({run_in: ['auto', 'kernel', 'box'], workspace: ['folder', 'readonly', 'private']}, name, [value])
  if type(value) != type(DEFAULTS[name]) && !(name == 'network' && (value == 0 || value == 1)) || index(choices, value) < 0
    throw printf('kern: g:kern.%s: %s will not do', name, string(value))
  endif
  return value
enddef

def NewHandle(kind: string): string
  handles += 1
  return kind .. '-' .. handles
enddef

# The directory that is the current buffer's project, or '': what has no marker above it, or is all of $HOME, is none.
def Root(): string
  var file = &buftype == '' ? resolve(expand('%:p')) : ''
  if file !~ '^/' # no file, or one of another machine
    return ''
  endif
  var path = fnamemodify(file, ':h')
  while path != '/' && path != resolve($HOME)
    for marker in Setting('markers')
      if !empty(glob(escape(path, '*?[{`$\') .. '/' .. marker, true, true))
        return path
      endif
    endfor
    path = fnamemodify(path, ':h')
  endwhile
  return ''
enddef

def Place(root: string): string
  return root == '' || Setting('workspace') == 'private' ? '' : Setting('workspace') == 'folder' ? '/workspace' : '/project'
enddef

def SessionParams(root: string): dict<any>
  var params = {
    memoryMb: Setting('memory_mb'), timeoutMs: Setting('timeout_s') * 1000, network: Setting('network') ? true : false,
    maxOutputBytes: MAX_OUTPUT_BYTES, trackFiles: false,
  }
  var place = Place(root)
  if place == '/project'
    extend(params, {mounts: [{source: root, target: place, mode: 'ro'}], cwd: place})
  elseif place == '/workspace'
    var mounts = []
    for name in Setting('protect')
      var source = resolve(root .. '/' .. name)
      if stridx(source, root .. '/') == 0 && (isdirectory(source) || filereadable(source))
        add(mounts, {source: source, target: place .. source[strlen(root) :], mode: 'ro'})
      endif
    endfor
    extend(params, {workspace: root, mounts: mounts})
  endif
  return params
enddef

# Then({}) once the session of `root` is open, or Then(error).
def WithSession(root: string, Then: func)
  if !has_key(sessions, root)
    NewSession(root)
  endif
  if sessions[root].opened
    Then({})
  else
    add(sessions[root].waiting, Then)
  endif
enddef

def NewSession(root: string)
  var session: dict<any> = {id: NewHandle('session'), opened: false, waiting: [], kernels: {}}
  var params = extend({sessionId: session.id}, SessionParams(root))
  sessions[root] = session
  sidecar.Request('session/open', params, (_, error) => Opened(root, session, error))
enddef

def Opened(root: string, session: dict<any>, error: dict<any>)
  session.opened = empty(error)
  if !session.opened && has_key(sessions, root) && sessions[root] is session
    remove(sessions, root)
  endif
  for Then in session.waiting
    Then(error)
  endfor
  session.waiting = []
enddef

# Then(kernelId, {}) or Then('', error).
def WithKernel(root: string, language: string, Then: func)
  WithSession(root, (error) => empty(error) ? KernelOf(root, language, Then) : Then('', error))
enddef

def KernelOf(root: string, language: string, Then: func)
  var kernels: dict<any> = sessions[root].kernels
  if has_key(kernels, language)
    Then(kernels[language], {}) # the sidecar takes what comes for it in order
    return
  endif
  var id = NewHandle('kernel')
  kernels[language] = id
  sidecar.Request('kernel/open', {kernelId: id, sessionId: sessions[root].id, language: language}, (_, error) => {
    if !empty(error) && get(kernels, language, '') == id
      remove(kernels, language)
    endif
    Then(empty(error) ? id : '', error)
  })
enddef

def Language(): string
  var language = Setting('language') == '' ? get(LANGUAGES, &filetype, '') : Setting('language')
  if language == ''
    throw 'kern: nothing here runs the filetype ' .. string(&filetype) .. ': set g:kern.language'
  endif
  return language
enddef

# Runs lines first to last of the current buffer; `where`: box, or as g:kern.run_in says.
export def Run(first: number, last: number, where = 'cell')
  try
    Begin(first, last, where)
  catch /^kern: /
    echohl ErrorMsg | echomsg v:exception | echohl None
  endtry
enddef

def Begin(first: number, last: number, where: string)
  CheckSettings()
  var language = Language()
  var run_in = Setting('run_in')
  var auto = where == 'file' || index(NO_KERNEL, language) >= 0 ? 'box' : 'kernel'
  var in_box = where == 'box' || (run_in == 'auto' ? auto : run_in) == 'box'
  var root = Root()
  var name = expand('%:t') == '' ? '[buffer]' : expand('%:t')
  var inside = Place(root) == '' ? '' : Place(root) .. resolve(expand('%:p'))[strlen(root) :]
  var facts = {
    id: NewHandle('run'), language: language, in_box: in_box, root: root, buffer: bufnr(), first: first, last: last, filename: inside == '' ? name : inside, seen: 0,
    title: printf('%s, lines %d to %d', name, first, last), code: cells.Code(first, last),
  }
  running[facts.id] = {request: 0, kernel: '', asked: false}
  var Failed = (error) => End(facts, {}, error)
  show.Open()
  if in_box
    WithSession(root, (error) => empty(error) ? Start(facts, 'run/code', {sessionId: sessions[root].id, language: language}) : Failed(error))
  else
    WithKernel(root, language, (kernel, error) => empty(error) ? Start(facts, 'kernel/run', {kernelId: kernel}) : Failed(error))
  endif
enddef

def Start(facts: dict<any>, method: string, target: dict<any>)
  if running[facts.id].asked
    End(facts, {}, {message: 'interrupted before it began'})
    return
  endif
  show.Say('--- ' .. facts.title)
  sidecar.Listen(facts.id, (heard, what) => Hear(facts, heard, what))
  running[facts.id].kernel = get(target, 'kernelId', '')
  var params = extend({runId: facts.id, code: facts.code, filename: facts.filename, stream: 'live'}, target)
  if !facts.in_box && sidecar.Asks(facts.language)
    params.allowInput = true
  endif
  running[facts.id].request = sidecar.Request(method, params, (result, error) => End(facts, result, error))
enddef

# A function, and no lambda: one that assigns to a member of what it captures crashes Vim 9.0 (or is E1248).
def Hear(facts: dict<any>, heard: string, what: dict<any>)
  if heard == 'run/output' && has_key(what, 'text')
    facts.seen += what.bytes
    show.Append(what.text)
  elseif heard == 'run/inputWanted'
    var answer = show.Ask(what.prompt, what.password)
    if has_key(running, facts.id) # it may have ended meanwhile
      sidecar.Request('run/stdin', extend({runId: facts.id}, has_key(answer, 'line') ? {text: answer.line .. "\n"} : {eof: true}), (_, _) => 0)
    endif
  endif
enddef

def End(facts: dict<any>, result: dict<any>, error: dict<any>)
  sidecar.Unlisten(facts.id)
  if !empty(error)
    remove(running, facts.id)
    show.Say(printf('--- not run: %s%s', error.message, empty(get(get(error, 'data', {}), 'hint', '')) ? '' : ' (' .. error.data.hint .. ')'))
    if get(get(error, 'data', {}), 'reason', '') == 'kernel_dead'
      show.Say('--- :KernRestart begins afresh')
    endif
  else
    var missed = result.stdoutBytes + result.stderrBytes - facts.seen
    if missed > 0
      show.Say(printf('[%d bytes came too fast to be shown here]', missed))
    endif
    for note in Listed(result, 'runtimeNotes')
      show.Say('[' .. note.message .. ']')
    endfor
    Values(Listed(result, 'results'), 0, () => Close(facts, result))
  endif
enddef

# A list of a result; one that was too large for a line is left out.
def Listed(result: dict<any>, name: string): list<any>
  return type(get(result, name, [])) == v:t_list ? get(result, name, []) : []
enddef

# Shows results from `i` on, then Done(): images as files, the rest as text.
def Values(results: list<any>, i: number, Done: func)
  if i >= len(results)
    Done()
    return
  endif
  var data = results[i].data
  var suffix = has_key(data, 'image/png') ? 'png' : has_key(data, 'image/jpeg') ? 'jpeg' : ''
  if suffix != ''
    var file = show.ImageFile(suffix)
    sidecar.Save(data['image/' .. suffix], file, (all) => {
      show.Say(all ? '[image] ' .. file : '[an image that could not be written]')
      Values(results, i + 1, Done)
    })
    return
  endif
  var text = get(data, 'text/plain', get(data, 'text/markdown', '[' .. join(keys(data), ', ') .. ']'))
  show.Say(type(text) == v:t_string ? text : '[a value too long to be shown]')
  Values(results, i + 1, Done)
enddef

def Close(facts: dict<any>, result: dict<any>)
  var how = has_key(result, 'fault') ? result.fault.type .. ': ' .. result.fault.message
    : get(result, 'cellStatus', '') == 'interrupted' ? 'interrupted'
    : result.exitCode == 0 ? 'ok' : has_key(result, 'error') ? result.error.name : 'exit ' .. result.exitCode
  var lost = get(result, 'stateKept', true) ? '' : ', the state is lost'
  var where = facts.in_box ? 'box' : '[' .. get(result, 'executionCount', ' ') .. ']'
  show.Say(printf('--- %s %s: %s, %.2f s%s', facts.language, where, how, result.durationMs / 1000.0, lost))
  show.Errors(Mistakes(facts, result))
  remove(running, facts.id)
  redrawstatus!
enddef

# Where the error is in the user's files, the innermost last as in a traceback.
def Mistakes(facts: dict<any>, result: dict<any>): list<dict<any>>
  if result.exitCode == 0 && !has_key(result, 'fault') || get(result, 'cellStatus', '') == 'interrupted'
    return []
  endif
  var items: list<dict<any>> = []
  if has_key(result, 'error')
    var text = result.error.name .. ': ' .. result.error.message
    var place = Place(facts.root)
    for frame in result.error.frames
      var item = {lnum: frame.line, col: get(frame, 'column', 0), text: text, type: 'E'}
      if frame.file == facts.filename
        add(items, extend(item, {bufnr: facts.buffer}))
      elseif place != '' && stridx(frame.file, place .. '/') == 0
        add(items, extend(item, {filename: facts.root .. frame.file[strlen(place) :]}))
      endif
    endfor
    return empty(items) ? [{bufnr: facts.buffer, lnum: facts.first, text: text, type: 'E'}] : items
  endif
  for line in type(result.stderr) == v:t_string ? split(result.stderr, "\n") : []
    var found = matchlist(line, '^\(\S.\{-}\): line \(\d\+\): \(.*\)$') # a shell
    if !empty(found) && fnamemodify(found[1], ':t') == fnamemodify(facts.filename, ':t')
      items = [{bufnr: facts.buffer, lnum: str2nr(found[2]), text: found[3], type: 'E'}]
    endif
  endfor
  if empty(items) && has_key(result, 'fault') && result.fault.type != 'cancelled'
    items = [{bufnr: facts.buffer, lnum: facts.first, text: result.fault.type .. ': ' .. result.fault.message, type: 'E'}]
  endif
  return items
enddef

export def Cell()
  var [first, last] = cells.Around(line('.'))
  Run(first, last)
enddef

export def File()
  Run(1, line('$'), 'file')
enddef

# A cell is interrupted and keeps its state; what is asked twice, and a box, is made to stop.
export def Interrupt()
  for run in values(running)
    if run.kernel != '' && run.request != 0 && !run.asked
      sidecar.Request('kernel/interrupt', {kernelId: run.kernel}, (_, _) => 0)
    elseif run.request != 0
      sidecar.Cancel(run.request)
    endif
    run.asked = true
  endfor
enddef

# Ends everything of this project, in the output of all; the next run begins afresh, with the settings of then.
export def Restart()
  for root in bufname() =~ '^kern://' ? keys(sessions) : [Root()]
    if has_key(sessions, root)
      sidecar.Request('session/close', {sessionId: remove(sessions, root).id}, (_, _) => 0)
    endif
  endfor
enddef

export def Output()
  show.Open()
enddef

export def Status(): string
  return 'kern: ' .. (empty(running) ? sidecar.Running() ? 'idle' : 'ready' : 'busy')
enddef

export def Doctor()
  try
    sidecar.Request('host/doctor', {}, (report, error) => {
      var lines = ['Vim ' .. v:versionlong .. ', ' .. sidecar.Program(), '']
      if !empty(error)
        add(lines, error.message)
      else
        add(lines, report.ok ? 'Boxes start here.' : 'Boxes do NOT start here.')
        for check in Listed(report, 'checks')
          add(lines, printf('%-5s %s: %s', check.status, check.id, check.found))
          if has_key(check, 'fix')
            add(lines, '      cure: ' .. check.fix)
          endif
        endfor
      endif
      show.Page('kern://doctor', mapnew(lines, (_, line) => substitute(line, "\n", ' ', 'g')))
    })
  catch /^kern: /
    echohl ErrorMsg | echomsg v:exception | echohl None
  endtry
enddef
