// The dialog that asks before something changes.

const DIALOG = document.getElementById("dialog");
const part = (name) => document.getElementById(`dialog-${name}`);

// name: has to be typed. detail: the label of a text; it may be empty if it is optional. option: the label of a choice.
// Returns { detail, option }, or null if the user does not want it.
export function asked({ title, text, name = "", detail = "", optional = false, option = "" }) {
  const [typed, input, chosen, yes] = [part("input"), part("detail-input"), part("option-input"), part("yes")];
  part("title").textContent = title;
  part("text").textContent = text;
  part("name").textContent = name;
  part("typed").hidden = !name;
  shownWith("detail", detail);
  shownWith("option", option);
  typed.value = input.value = "";
  chosen.checked = false;
  yes.textContent = title.split(" ", 1)[0];
  DIALOG.oninput = () => { yes.disabled = typed.value !== name || Boolean(detail && !optional && !input.value); };
  DIALOG.oninput();
  return new Promise((resolve) => {
    let answer = null;
    yes.onclick = () => { answer = { detail: input.value, option: chosen.checked }; DIALOG.close(); };
    part("no").onclick = () => DIALOG.close();
    DIALOG.onclose = () => resolve(answer);
    DIALOG.showModal();
    (detail ? input : typed).focus();
  });
}

function shownWith(name, label) {
  part(name).hidden = !label;
  part(`${name}-label`).textContent = label;
}
