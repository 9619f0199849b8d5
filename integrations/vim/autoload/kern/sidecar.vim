vim9script
# The sidecar: one process for this Vim, started by the first request, JSON-RPC with an object a line. It ends when its stdin
# does, or when Vim does, however that happens.

const MAX_LINE_BYTES = 4 << 20
const PIECE_BYTES = 1 << 20

var job: job = null_job
var program = ''
var pending: dict<func> = {} # id -> Done(result, error)
var listeners: dict<func> = {} # runId -> Heard(method, params)
var next_id = 0
var last_words: list<string> = []
var asks: list<string> = [] # languages whose cells may ask for input

# Called with no arguments when the sidecar has ended and everything in its boxes with it.
export var lost: list<func> = []

def FindProgram(): string
  var named = get(get(g:, 'kern', {}), 'program', $KERN_SIDECAR)
  if named != '' # nobody wants another program than the one they named
    if named !~ '^/' || !executable(named)
      throw 'kern: ' .. string(named) .. ' is not the absolute path of a program'
    endif
    return named
  endif
  var found = exepath('kern-sidecar')
  if found !~ '^/'
    throw 'kern: there is no kern-sidecar in PATH: set g:kern.program'
  endif
  return found
enddef

export def Running(): bool
  return job != null_job && job_status(job) == 'run'
enddef

export def Program(): string
  return program
enddef

def Start()
  program = FindProgram()
  last_words = []
  job = job_start([program, '--stdio'], {
    cwd: '/', mode: 'nl', out_cb: Line, err_cb: Complaint, exit_cb: Ended, stoponexit: 'kill',
  })
  if !Running()
    throw 'kern: ' .. program .. ' cannot be started'
  endif
  Send('initialize', {
    protocolVersion: 1, client: {name: 'kern (vim)', version: '0.1.0'}, processId: getpid(), capabilities: {maxLineBytes: MAX_LINE_BYTES},
  }, Welcomed)
enddef

def Welcomed(welcome: dict<any>, error: dict<any>)
  if empty(error)
    asks = welcome.capabilities.languages->filter((_, one) => get(one, 'input', false))->mapnew((_, one) => one.name)
  else # everything else is refused, too, and says so
    add(last_words, error.message)
  endif
enddef

# Known once a session is open.
export def Asks(language: string): bool
  return index(asks, language) >= 0
enddef

def Write(message: dict<any>)
  ch_sendraw(job_getchannel(job), json_encode(extend({jsonrpc: '2.0'}, message)) .. "\n")
enddef

def Send(method: string, params: dict<any>, Done: func): number
  next_id += 1
  pending[next_id] = Done
  Write({id: next_id, method: method, params: params})
  return next_id
enddef

# Done is called once: with a result and {}, or with {} and an error. An error means that nothing ran.
export def Request(method: string, params: dict<any>, Done: func): number
  if !Running()
    Start()
  endif
  return Send(method, params, Done)
enddef

export def Cancel(id: number)
  if Running()
    Write({method: '$/cancel', params: {id: id}})
  endif
enddef

export def Listen(runId: string, Heard: func)
  listeners[runId] = Heard
enddef

export def Unlisten(runId: string)
  if has_key(listeners, runId)
    remove(listeners, runId)
  endif
enddef

def Line(_: channel, line: string)
  var message = json_decode(line)
  if has_key(message, 'method')
    var params = message.params
    if has_key(params, 'runId') && has_key(listeners, params.runId)
      listeners[params.runId](message.method, params)
    endif
  elseif has_key(pending, message.id)
    var Done = remove(pending, message.id)
    Done(get(message, 'result', {}), get(message, 'error', {}))
  endif
enddef

def Complaint(_: channel, line: string)
  last_words = (last_words + [line])[-5 :]
enddef

def Ended(ended: job, status: number)
  if ended != job
    return
  endif
  var waiting = values(pending)
  pending = {}
  listeners = {}
  job = null_job
  for Tell in lost
    Tell()
  endfor
  var said = empty(last_words) ? '' : ' Its last words: ' .. join(last_words, '; ')
  for Done in waiting
    Done({}, {message: printf('kern-sidecar ended (%d) before it answered.%s', status, said), data: {reason: 'sidecar_lost'}})
  endfor
enddef

# Writes the bytes of an image, which is base64 in a line and bytes in a blob, to a file: Done(whether it is all there).
export def Save(image: any, file: string, Done: func)
  if type(image) == v:t_dict && has_key(image, 'blob')
    Fetch(image.blob.id, 0, file, Done)
  else
    Done(Add(file, {base64: type(image) == v:t_dict ? image.base64 : image}))
  endif
enddef

def Fetch(id: string, offset: number, file: string, Done: func)
  Request('blob/read', {id: id, offset: offset, length: PIECE_BYTES}, (piece, error) => {
    if !empty(error) || !Add(file, piece) # evicted, or the disk is full: half an image is none
      delete(file)
      Done(false)
    elseif piece.eof
      Done(true)
    else
      Fetch(id, piece.nextOffset, file, Done)
    endif
  })
enddef

def Add(file: string, piece: dict<any>): bool
  system((has_key(piece, 'base64') ? 'base64 -d >> ' : 'cat >> ') .. shellescape(file), get(piece, 'base64', get(piece, 'text', '')))
  return v:shell_error == 0
enddef
