// In the panel's page: shows what it is sent, and sends what is clicked.
'use strict';

const host = acquireVsCodeApi();
const entries = document.getElementById('entries');

function put({ id, html }) {
  let section = document.getElementById(id);
  const atEnd = window.innerHeight + window.scrollY >= document.body.scrollHeight - 40;
  if (!section) {
    section = document.createElement('section');
    section.id = id;
    entries.append(section);
  }
  section.innerHTML = html;
  if (atEnd) window.scrollTo(0, document.body.scrollHeight);
}

window.addEventListener('message', ({ data }) => {
  if (data.op === 'put') put(data);
  else if (data.op === 'drop') document.getElementById(data.id)?.remove();
  else if (data.op === 'clear') entries.replaceChildren();
});

document.addEventListener('click', ({ target }) => {
  const button = target.closest('button');
  if (button) host.postMessage({ op: button.dataset.op, id: button.closest('section').id, index: Number(button.dataset.index) });
});

host.postMessage({ op: 'ready' });
